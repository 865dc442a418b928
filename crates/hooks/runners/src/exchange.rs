//! What observers see of the answers of workers, web services and models.

use tenterhook_engine::RawExchange;

/// The maximum size of an answer that observers see, in bytes. The dispatch copies it.
const MAX_ANSWER: usize = 64 << 10;

/// Returns the exchange with a hook that received `input_bytes` and returned `answer`. The end of a long answer is left
/// out, without leaving a part of a secret at the cut.
pub(crate) fn of_answer(input_bytes: usize, answer: &[u8]) -> RawExchange {
    let Some(start) = answer
        .get(..MAX_ANSWER)
        .filter(|_| answer.len() > MAX_ANSWER)
    else {
        return RawExchange::new(input_bytes, answer);
    };
    let kept = start.get(..tenterhook_protocol::excerpt::head_end(start));
    let mut exchange = RawExchange::new(input_bytes, kept.unwrap_or_default());
    exchange.is_truncated = true;
    exchange
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_answer_is_not_copied_and_leaves_no_part_of_a_token() {
        let token = format!("ghp_{}", "1x9QzP3vW7kB5nR2mT8yL4cF6dH0sJgA1x9Q");
        let mut answer = "x ".repeat(MAX_ANSWER / 2 - 10) + &token;
        answer.push_str(&" y".repeat(8 << 20));
        let exchange = of_answer(10, answer.as_bytes());
        assert!(exchange.is_truncated && exchange.stdout.len() <= MAX_ANSWER);
        assert!(!exchange.stdout.windows(4).any(|part| part == b"ghp_"));
        let short = of_answer(10, b"{}");
        assert!(!short.is_truncated && *short.stdout == *b"{}");
    }
}
