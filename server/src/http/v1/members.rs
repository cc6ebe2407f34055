//! `/v1/members`: who belongs to the organisation, and who is invited.
//!
//! ```text
//! POST /v1/members/invite {"email": "grace@acme.example", "role": "editor"}
//! 201 {"id":"01a21f86-ee24-…","email":"grace@acme.example","role":"editor","invited_by":"Default admin key",
//!      "created_at":"2026-11-28T00:21:06.212Z","expires_at":"2026-12-05T00:21:06.212Z",
//!      "token":"eyJ0eXAiOiJpbnZpdGUrand0Iiws…","invite_url":"https://inlay.acme.com/console/invite?token=eyJ0…"}
//! the same again                        409 an invite of this address is pending
//! {"role": "owner", …}                  400 role must be one of viewer, editor, admin
//!
//! PATCH /v1/members/01a21f86-ef0d-… {"role": "viewer"}
//! 200 {"id":"01a21f86-ef0d-…","email":"grace@acme.example","name":"Grace Hopper","role":"viewer",…}
//! PATCH or DELETE of the last owner     409 an organisation keeps at least one owner
//! ```
//!
//! No mail is sent: the link is for the one who invites to hand over.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::view::Time;
use crate::{
    app::Caller,
    error::Result,
    http::{
        extract::{Body, Id, Page, Params},
        respond::{Answer, Created, List, NoContent},
        state::context::Http,
    },
    store::{Invite, Member, Role, User},
};

/// Who is invited, as what.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InviteMember {
    #[schema(format = "email", max_length = 254, example = "grace@acme.example")]
    email: String,
    /// `viewer`, `editor` or `admin`.
    #[schema(value_type = InvitedRole)]
    role: Role,
}

/// What an invite can make somebody.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "documents which roles an invite knows")]
enum InvitedRole {
    Viewer,
    Editor,
    Admin,
}

/// What a member may do.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateMember {
    role: Role,
}

/// A member of the organisation.
#[derive(Serialize, ToSchema)]
#[schema(as = Member)]
pub struct MemberView {
    /// That of the user.
    #[schema(format = Uuid)]
    id: String,
    #[schema(format = Uuid)]
    user_id: String,
    #[schema(example = "grace@acme.example")]
    email: String,
    name: String,
    role: Role,
    joined_at: Time,
}

/// A pending invite.
#[derive(Serialize, ToSchema)]
#[schema(as = Invite)]
pub struct InviteView {
    #[schema(format = Uuid)]
    id: String,
    #[schema(example = "grace@acme.example")]
    email: String,
    role: Role,
    /// Label of who invited.
    invited_by: String,
    created_at: Time,
    expires_at: Time,
}

/// An invite that was just made, with its link.
#[derive(Serialize, ToSchema)]
#[schema(as = NewInvite)]
pub struct NewInviteView {
    #[serde(flatten)]
    invite: InviteView,
    /// Signed; shown this once.
    token: String,
    /// The page that accepts it.
    #[schema(format = Uri)]
    invite_url: String,
}

/// All members, newest first.
pub async fn list(
    State(http): State<Http>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<List<MemberView>> {
    let members = http.run(move |app| app.members(&caller)).await?;
    let (members, next) = page.cut(members, |(member, _)| member.id.clone())?;
    Ok(List { data: members.into_iter().map(member).collect(), next })
}

/// Invites somebody. 201 with the link, shown this once; 409 for an address that has an account or an invite.
pub async fn invite(
    State(http): State<Http>,
    caller: Caller,
    body: Body<InviteMember>,
) -> Result<Created<NewInviteView>> {
    let body = body.read()?;
    let made = http.run(move |app| app.invite(&caller, &body.email, body.role)).await?;
    Ok(Created(NewInviteView {
        invite: pending(made.invite),
        token: made.token,
        invite_url: made.url,
    }))
}

/// Invites that can still be accepted, newest first.
pub async fn invites(
    State(http): State<Http>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<List<InviteView>> {
    let invites = http.run(move |app| app.invites(&caller)).await?;
    let (invites, next) = page.cut(invites, |invite| invite.id.clone())?;
    Ok(List { data: invites.into_iter().map(pending).collect(), next })
}

/// Withdraws an invite. 204; its link is 401 from now on.
pub async fn revoke_invite(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
) -> Result<NoContent> {
    http.run(move |app| app.revoke_invite(&caller, &id)).await?;
    Ok(NoContent)
}

/// Changes the role of a member; owners only. 409 for the last owner, 404 for an id that is no member.
pub async fn update(
    State(http): State<Http>,
    caller: Caller,
    Id(id): Id,
    body: Body<UpdateMember>,
) -> Result<Answer<MemberView>> {
    let changed = http
        .run(move |app| {
            app.member(&caller, &id)?;
            app.update_member(&caller, &id, body.read()?.role)
        })
        .await?;
    Ok(Answer(member(changed)))
}

/// Removes a member, whose sessions end. 204, or 409 for the last owner.
///
/// Viewers and editors remove nobody but themselves, admins also viewers and editors, owners everybody; otherwise 403.
pub async fn delete(State(http): State<Http>, caller: Caller, Id(id): Id) -> Result<NoContent> {
    http.run(move |app| app.delete_member(&caller, &id)).await?;
    Ok(NoContent)
}

fn member((member, user): (Member, User)) -> MemberView {
    MemberView {
        id: member.id,
        user_id: user.id,
        email: user.email,
        name: user.name,
        role: member.role,
        joined_at: Time(member.joined_at),
    }
}

fn pending(invite: Invite) -> InviteView {
    InviteView {
        id: invite.id,
        email: invite.email,
        role: invite.role,
        invited_by: invite.invited_by,
        created_at: Time(invite.created_at),
        expires_at: Time(invite.expires_at),
    }
}
