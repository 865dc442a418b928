//! What scripts show to the user, and what they ask.

use std::future;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_protocol::event::NotificationLevel;
use tenterhook_runners::worker::Refusal;
use tokio::time::sleep;

use crate::drawing::DrawingFrame;
use crate::extension::ScriptHost;
use crate::frontend::{Frontend, ScriptDisplay, ScriptQuestion};
use crate::script_view::{AgentView, read};

/// Shows that a question was withdrawn, if it is dropped before the question is answered.
struct AskedQuestion<'a> {
    frontend: &'a dyn Frontend,
    is_answered: bool,
}

impl Drop for AskedQuestion<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.frontend.question_withdrawn();
        }
    }
}

impl AgentView {
    /// Answers a request about the user interface.
    pub(crate) async fn answer_ui(
        &self,
        host: &ScriptHost,
        method: &str,
        params: &Value,
    ) -> Result<Value, Refusal> {
        match method {
            "ui/notify" => {
                let NotifyParams { message, level } = read(params)?;
                let level = level_of(&level);
                let notice = ScriptDisplay::Notice { level, message };
                self.frontend.display(&notice).await;
            }
            "ui/show" => {
                let display: ScriptDisplay = read(params)?;
                self.frontend.display(&display).await;
            }
            "ui/editor_text" => return Ok(json!({ "text": self.frontend.editor_text() })),
            "ui/dismiss" => {
                let DialogParams { dialog } = read(params)?;
                let was_open = self.drawings.close(&dialog) || self.dialogs.dismiss(&dialog);
                return Ok(json!({ "dismissed": was_open }));
            }
            "ui/custom" => {
                let DialogParams { dialog } = read(params)?;
                self.let_draw(dialog).await?;
            }
            "ui/draw" => {
                let DrawParams { dialog, frame } = read(params)?;
                self.drawings.draw(&dialog, frame).await;
            }
            "ui/suspend" => {
                let SuspendParams { dialog, group } = read(params)?;
                self.drawings.give_terminal(&dialog, Some(group)).await;
            }
            "ui/resume" => {
                let DialogParams { dialog } = read(params)?;
                self.drawings.give_terminal(&dialog, None).await;
            }
            "ui/keys" => {
                let DialogParams { dialog } = read(params)?;
                return Ok(json!(self.drawings.input(&dialog).await));
            }
            "ui/confirm" | "ui/select" | "ui/input" | "ui/editor" => {
                return self.ask(host, method, params).await;
            }
            _ => return Err(Refusal::NoMethod),
        }
        Ok(json!({}))
    }

    async fn ask(&self, host: &ScriptHost, method: &str, params: &Value) -> Result<Value, Refusal> {
        if !host.has_user() {
            return Ok(json!({}));
        }
        let params: QuestionParams = read(params)?;
        let within = params.timeout_ms.map(Duration::from_millis);
        let dialog = params.dialog.clone().map(|id| self.dialogs.open(id));
        let withdrawn = async {
            match &dialog {
                Some(dialog) => dialog.withdrawn().await,
                None => future::pending().await,
            }
        };
        let question = params.question(method);
        let answer = tokio::select! {
            biased;
            () = withdrawn => None,
            answer = self.ask_user(&question, within) => answer,
        };
        Ok(match answer {
            None => json!({}),
            Some(answer) if method == "ui/confirm" => json!({ "answer": answer == "yes" }),
            Some(answer) => json!({ "answer": answer }),
        })
    }

    /// Lets a script draw, as soon as no question is open, until the script or the user closes the drawing.
    async fn let_draw(&self, id: String) -> Result<(), Refusal> {
        if !self.frontend.can_draw() {
            return Err(Refusal::Unavailable(
                "components can be drawn only at a terminal".to_owned(),
            ));
        }
        let open = self.drawings.open(id);
        let _one_at_a_time = tokio::select! {
            biased;
            () = open.drawing.closed() => return Ok(()),
            question = self.state.question.lock() => question,
        };
        self.frontend.draw(&open.drawing).await;
        Ok(())
    }

    /// Asks the user as soon as no other question is open. The time limit begins then.
    async fn ask_user(
        &self,
        question: &ScriptQuestion,
        within: Option<Duration>,
    ) -> Option<String> {
        let _one_at_a_time = self.state.question.lock().await;
        let mut asked = AskedQuestion {
            frontend: &*self.frontend,
            is_answered: false,
        };
        let time_is_up = async {
            match within {
                Some(within) => sleep(within).await,
                None => future::pending().await,
            }
        };
        let answer = tokio::select! {
            biased;
            answer = self.frontend.question(question) => answer,
            () = time_is_up => return None,
        };
        asked.is_answered = true;
        answer
    }
}

#[derive(Deserialize)]
struct NotifyParams {
    message: String,
    #[serde(default)]
    level: String,
}

#[derive(Deserialize)]
struct DialogParams {
    dialog: String,
}

#[derive(Deserialize)]
struct SuspendParams {
    dialog: String,
    group: u32,
}

#[derive(Deserialize)]
struct DrawParams {
    dialog: String,
    #[serde(flatten)]
    frame: DrawingFrame,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct QuestionParams {
    title: String,
    message: String,
    options: Vec<String>,
    placeholder: Option<String>,
    text: Option<String>,
    dialog: Option<String>,
    timeout_ms: Option<u64>,
}

impl QuestionParams {
    fn question(self, method: &str) -> ScriptQuestion {
        let title = self.title;
        match method {
            "ui/confirm" => ScriptQuestion::Confirm {
                title,
                message: self.message,
            },
            "ui/select" => ScriptQuestion::Select {
                title,
                options: self.options,
            },
            "ui/editor" => ScriptQuestion::Editor {
                title,
                text: self.text.unwrap_or_default(),
            },
            _ => ScriptQuestion::Input {
                title,
                placeholder: self.placeholder,
            },
        }
    }
}

fn level_of(word: &str) -> NotificationLevel {
    match word {
        "error" => NotificationLevel::Error,
        "warning" => NotificationLevel::Warning,
        _ => NotificationLevel::Info,
    }
}
