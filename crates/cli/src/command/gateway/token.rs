//! Creates, lists and revokes access tokens.

use crate::ancestry::require_user;
use jiff::Timestamp;
use serde_json::{Value, json};
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::table::{self, Cell, plain};
use tenterhook_terminal::output::{self, style};

use crate::command::gateway::args::{ListArgs, TokenArgs, TokenCommand};
use crate::command::gateway::client::{Proven, administer, entries, text};
use crate::command::gateway::grant::give_rights;

pub(super) async fn token(command: TokenCommand, interrupts: &Interrupts) -> Result<(), CliError> {
    match command {
        TokenCommand::Create(args) => create(&args, interrupts).await,
        TokenCommand::List(args) => list(args, interrupts).await,
        TokenCommand::Revoke { id } => {
            require_user("revoke access tokens")?;
            administer(
                "token.revoke",
                json!({ "name": id }),
                Proven::No,
                interrupts,
            )
            .await?;
            output::line(format_args!("Revoked `{}`.", escape_line(&id)));
            Ok(())
        }
    }
}

async fn create(args: &TokenArgs, interrupts: &Interrupts) -> Result<(), CliError> {
    let expires = args
        .expires
        .map(|after| Timestamp::now().checked_add(after));
    let expires = expires.transpose().map_err(|error| {
        CliError::new(Exit::Usage, "the token would expire too far in the future").cause(&error)
    })?;
    let scopes: Vec<&str> = args.scopes.iter().map(|scope| scope.word()).collect();
    let params = json!({
        "name": args.name,
        "user": args.user,
        "scopes": scopes,
        "expires": expires,
    });
    let method = ("token.create", true);
    let created = give_rights(method, "create access tokens", params, interrupts).await?;
    output::note("Keep this token; it is not shown again.");
    output::line(text(&created, "secret"));
    Ok(())
}

async fn list(args: ListArgs, interrupts: &Interrupts) -> Result<(), CliError> {
    let listed = administer("token.list", json!({}), Proven::No, interrupts).await?;
    let listed = json!({ "tokens": listed });
    if args.json {
        output::json(&listed);
        return Ok(());
    }
    let rows: Vec<Vec<Cell>> = entries(&listed, "tokens").map(row).collect();
    if rows.is_empty() {
        output::line("No tokens.");
    }
    table::lines(&rows).iter().for_each(output::line);
    Ok(())
}

fn row(token: &Value) -> Vec<Cell> {
    let scopes = entries(token, "scopes").filter_map(Value::as_str);
    let scopes: Vec<String> = scopes.map(escape_line).collect();
    let expires = match text(token, "expires") {
        time if time.is_empty() => "does not expire".to_owned(),
        time => format!("expires {time}"),
    };
    vec![
        (text(token, "id"), style::NAME),
        plain(text(token, "name")),
        plain(text(token, "user")),
        plain(scopes.join(" ")),
        (expires, style::QUIET),
    ]
}
