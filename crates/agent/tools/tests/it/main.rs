//! Tests of the tools as an agent offers them.

mod offered;
