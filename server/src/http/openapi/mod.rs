//! The OpenAPI document: read from the signatures of handlers, put together from the table of operations.
//!
//! ```text
//! GET "/v1/alerts/{alert_id}" GetAlert alerts::get [];                                   the row of the table
//! async fn get(State<Http>, Caller, AlertId) -> Result<Answer<AlertView>>                its handler
//!
//! "/v1/alerts/{alert_id}": {"get": {
//!   "operationId": "GetAlert", "tags": ["alerts"], "summary": …,                         from the access table
//!   "parameters": [{"name": "alert_id", "in": "path", "schema": {"type": "integer"}}, …],   from `AlertId`
//!   "responses": {"200": {"content": … "#/components/schemas/Alert"},                    from `Answer<AlertView>`
//!                 "400": "`invalid_field`, `unknown_value`", "401": …, "404": "`not_found`", …},
//!   "security": [{"api_key": []}, {"session": []}]}}                                     from the access table
//! ```

pub mod describe;

pub mod document;
