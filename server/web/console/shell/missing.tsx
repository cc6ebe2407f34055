// Addresses without a page, and pages whose files cannot be loaded (a new version was installed meanwhile).

import { Component, type ComponentChildren } from "preact";
import { address } from "../state/environment";
import { texts } from "../texts/en";
import { Button, LinkButton } from "../ui/button";
import { Empty, Page } from "../ui/page";

export function Missing() {
  return (
    <Page title={texts.shell.missing}>
      <div class="box">
        <Empty title={texts.shell.missingTitle} text={texts.shell.missingText}>
          <LinkButton href={address("dashboards")}>{texts.menu.pages.dashboards}</LinkButton>
        </Empty>
      </div>
    </Page>
  );
}

/** `path` is the page's: another page may be sound. */
export class Unloadable extends Component<{ path: string; children: ComponentChildren }, { isBroken: boolean }> {
  override state = { isBroken: false };

  static override getDerivedStateFromError() {
    return { isBroken: true };
  }

  override componentDidCatch(error: unknown) {
    console.error(error);
  }

  override componentDidUpdate(before: { path: string }) {
    if (before.path !== this.props.path && this.state.isBroken) this.setState({ isBroken: false });
  }

  override render() {
    if (!this.state.isBroken) return this.props.children;
    return (
      <Page title={texts.shell.broken}>
        <div class="box">
          <Empty title={texts.shell.brokenTitle} text={texts.shell.brokenText}>
            <Button kind="primary" onClick={() => location.reload()}>
              {texts.shell.reload}
            </Button>
          </Empty>
        </div>
      </Page>
    );
  }
}
