//! `ffuzz mcp`: an agent that asks and acts, and clients that do not behave.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::common;
use common::{TestDir, target, target_by, wait_until};

/// A client of `ffuzz mcp`.
struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    id: u64,
}

impl Agent {
    fn start(dir: &TestDir, words: &str) -> Self {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ffuzz"));
        command.arg("mcp").args(words.split_whitespace()).current_dir(dir.path(""));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output, id: 0 }
    }

    fn send(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn request(&mut self, method: &str, parameters: Value) -> Value {
        self.id += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": parameters});
        self.send(request.to_string().as_bytes());
        let answer = self.read();
        assert_eq!(answer["id"], self.id, "{answer}");
        answer
    }

    /// Calls a tool; what it refuses is an error.
    fn ask(&mut self, tool: &str, arguments: Value) -> Result<Value, String> {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(text.len() <= 16 << 10, "{tool}: {} bytes", text.len());
        match result["isError"].as_bool() {
            Some(false) => Ok(result["structuredContent"].clone()),
            _ => Err(text.to_owned()),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

/// A campaign of `targets/ten.c` that cannot solve comparisons, and an agent with its socket.
fn running(dir: &TestDir) -> (common::Running, Agent) {
    dir.write("in/zeros", [0; 64]);
    // Neither the solvers nor the words of the program shall pass the gates.
    let variables = [("AFL_QUIET", "1"), ("FFUZZ_NO_WORDS", "1")];
    let ten = target_by(&variables, "ten.c", "-g -O1 -fsanitize=fuzzer");
    let job = dir.ffuzz("-i in -o out -c - -g 64 -G 64 --control s --").arg(ten);
    let campaign = job.start();
    let queue = dir.path("out/default/queue");
    wait_until("the first seed", || queue.exists() && !dir.entries("out/default/queue").is_empty());
    let agent = Agent::start(dir, "--write out");
    (campaign, agent)
}

/// Ways in which an operand may stand in the input.
fn written(operand: &Value, size: usize) -> Vec<Vec<u8>> {
    if let Some(hex) = operand["hex"].as_str() {
        let bytes: Vec<u8> = (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        // A text, or the cases of a switch.
        let cases = bytes.chunks_exact(8).map(|case| case[..size.clamp(1, 8)].to_vec());
        return std::iter::once(bytes.clone()).chain(cases).collect();
    }
    let value = operand["value"].as_u64().unwrap();
    let little = value.to_le_bytes()[..size.clamp(1, 8)].to_vec();
    let big = little.iter().rev().copied().collect();
    vec![little, big, value.to_string().into_bytes()]
}

/// Inputs that may pass a place.
fn candidates(closest: &[u8], comparison: &Value) -> Vec<Vec<u8>> {
    let size = comparison["size"].as_u64().unwrap() as usize;
    let Some(first) = comparison["bytes"][0][0].as_u64() else { return Vec::new() };
    let operands = comparison["operands"].as_array().unwrap();
    let mut found = Vec::new();
    // What is computed from the input by an exclusive or.
    if let [Some(a), Some(b)] = [0, 1].map(|side| operands[side]["value"].as_u64()) {
        let mut input = closest.to_vec();
        if let Some(part) = input.get_mut(first as usize..first as usize + size.min(8)) {
            part.iter_mut().zip((a ^ b).to_le_bytes()).for_each(|(byte, flip)| *byte ^= flip);
            found.push(input);
        }
    }
    for operand in operands {
        for bytes in written(operand, size) {
            for before in 0..bytes.len().min(8) {
                let Some(start) = (first as usize).checked_sub(before) else { continue };
                let mut input = closest.to_vec();
                if let Some(part) = input.get_mut(start..start + bytes.len()) {
                    part.copy_from_slice(&bytes);
                    found.push(input);
                }
            }
        }
    }
    found
}

#[test]
fn a_script_passes_gates_with_three_tools() {
    let dir = TestDir::new();
    let (campaign, mut agent) = running(&dir);
    // Nobody else shall pass one.
    agent.ask("pause", json!({})).unwrap();
    let mut passed = BTreeSet::new();
    let places = agent.ask("stuck", json!({"limit": 100})).unwrap();
    for place in places["entries"].as_array().unwrap() {
        let (id, comparison) = (place["id"].as_str().unwrap(), &place["comparison"]);
        if comparison.is_null() || place["input"].is_null() {
            continue;
        }
        let name = place["input"].as_str().unwrap();
        let closest = dir.read(&format!("out/default/queue/{name}"));
        for input in candidates(&closest, comparison) {
            let data = BASE64_STANDARD.encode(&input);
            let run = agent.ask("run_input", json!({"data": data, "watch": id})).unwrap();
            if run["watch"]["passed"] == true {
                assert!(run["new_edges"].as_u64().unwrap() > 0, "{run}");
                let kept = agent.ask("inject_input", json!({"data": data})).unwrap();
                if kept["kept"] == true {
                    passed.insert(id.to_owned());
                }
                break;
            }
        }
    }
    // The first place is the size; before the pause the campaign may have passed gates of two bytes.
    let shut = places["entries"].as_array().unwrap().len() - 1;
    assert!(passed.len() + 10 - shut >= 8, "{passed:?} of {places}");
    // What is passed is not stuck any more, but for the other case of the switch.
    let left = agent.ask("stuck", json!({"limit": 100})).unwrap();
    let again = left["entries"].as_array().unwrap().iter();
    let again = again.filter(|place| passed.contains(place["id"].as_str().unwrap()));
    assert!(again.clone().all(|place| place["outcome"] == "1 of 3 ways are never taken"), "{left}");
    assert!(again.count() <= 1, "{left}");
    assert_eq!(agent.ask("add_tokens", json!({"tokens": ["one", "two"]})), Ok(json!({"added": 2})));
    assert_eq!(agent.ask("status", json!({})).unwrap()["running"], true);
    let harness = json!({"function": "LLVMFuzzerTestOneInput", "seconds": 60});
    let preferred = agent.ask("prefer", harness).unwrap();
    assert!(preferred["inputs"].as_u64().unwrap() > 0, "{preferred}");
    for (arguments, cause) in [
        (json!({}), "give a function or a line"),
        (json!({"function": "none"}), "no function of the target"),
        (json!({"line": "ten.c:1"}), "no line with code"),
        (json!({"function": "LLVMFuzzerTestOneInput", "seconds": 90_000}), "a day"),
    ] {
        let refused = agent.ask("prefer", arguments).unwrap_err();
        assert!(refused.contains(cause), "{refused}");
    }
    agent.ask("prefer", json!({"seconds": 0})).unwrap();
    agent.ask("resume", json!({})).unwrap();
    agent.ask("stop", json!({})).unwrap();
    campaign.finish().expect(0);
    // Files answer without a campaign; orders need one.
    assert_eq!(agent.ask("status", json!({})).unwrap()["running"], false);
    assert!(agent.ask("inject_input", json!({"text": "x"})).unwrap_err().contains("campaign"));
}

#[test]
fn an_ended_campaign_answers_every_question() {
    let dir = TestDir::with_seed("a");
    dir.write("in/2", "((1)");
    dir.fuzz("-s 1 -E 5", &target("lines.c", "-g -O0"), "").run().expect(0);
    let mut agent = Agent::start(&dir, "out");
    let began =
        agent.request("initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}}));
    assert_eq!(began["result"]["protocolVersion"], "2025-06-18");
    agent.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let tools = agent.request("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"stuck") && !names.contains(&"inject_input"), "{names:?}");

    let status = agent.ask("status", json!({})).unwrap();
    assert_eq!(status["functions"], json!([2, 3]), "{status}");
    let place = agent.ask("stuck", json!({"limit": 1})).unwrap()["entries"][0].clone();
    let explained = agent.ask("explain_stuck", json!({"place": place["id"]})).unwrap();
    assert!(explained["source"].as_array().unwrap().len() > 10, "{explained}");
    assert!(!explained["seen"].as_array().unwrap().is_empty(), "{explained}");
    let file = agent.ask("coverage", json!({"file": "targets/lines.c"})).unwrap();
    assert!(file["unreached"].as_array().unwrap().contains(&json!([17, 19])), "{file}");
    let listed = agent
        .ask("coverage", json!({"file": "lines.c", "lines": true, "after": 5, "limit": 2}))
        .unwrap();
    assert_eq!((&listed["lines"][0][0], &listed["next"]), (&json!(6), &json!(7)), "{listed}");
    let never = agent.ask("never_entered", json!({"reason": "caller"})).unwrap();
    assert_eq!(never["entries"][0]["function"], "never");
    let reaching = agent.ask("inputs_reaching", json!({"file": "lines.c", "line": 7})).unwrap();
    assert_eq!(reaching["entries"].as_array().unwrap().len(), 1, "{reaching}");
    let name = reaching["entries"][0]["input"].clone();
    let input = agent.ask("explain_input", json!({"input": name})).unwrap();
    assert!(input["new_edges"].as_u64().unwrap() > 0 && input["seed"] == "2", "{input}");
    let run = agent.ask("run_input", json!({"text": "n", "watch": "lines.c:18"})).unwrap();
    assert_eq!((&run["watch"]["reached"], &run["outcome"]), (&json!(true), &json!("ok")), "{run}");
    let run = agent.ask("run_input", json!({"text": "a", "watch": "lines.c:31"})).unwrap();
    assert!(run["watch"]["reached"].is_boolean(), "{run}");
    let small = agent.ask("minimize", json!({"text": "xxnxx", "watch": "lines.c:18"}));
    let small =
        small.or_else(|_| agent.ask("minimize", json!({"text": "nxxxx", "watch": "lines.c:18"})));
    let small = small.unwrap();
    assert_eq!((&small["text"], &small["done"]), (&json!("n"), &json!(true)), "{small}");
    let both = agent.ask("compare_inputs", json!({"a": "id:000000", "b": "id:000001"})).unwrap();
    assert!(both["b"]["only_lines"].to_string().contains("lines.c"), "{both}");
    assert_eq!(agent.ask("bugs", json!({})).unwrap()["entries"], json!([]));
    assert_eq!(agent.ask("domains", json!({})).unwrap()["entries"], json!([]));
    for (tool, arguments, cause) in [
        ("explain_stuck", json!({"place": "1-0"}), "no stuck place"),
        ("coverage", json!({"file": "none.c"}), "no source file"),
        ("inputs_reaching", json!({"file": "lines.c", "line": 1}), "no line with code"),
        ("explain_input", json!({"input": "id:9"}), "no input of the queue"),
        ("bug", json!({"bug": "x"}), "no bug"),
        ("never_entered", json!({"reason": "x"}), "none of caller"),
        ("run_input", json!({}), "one of data, text and path"),
        ("run_input", json!({"path": "/dev/zero"}), "cannot read"),
        ("stuck", json!({"limit": -1}), "whole number"),
        ("minimize", json!({"text": "a"}), "say with `watch`"),
        ("minimize", json!({"text": "a", "watch": "lines.c:18"}), "does not come to that place"),
    ] {
        let refused = agent.ask(tool, arguments.clone()).unwrap_err();
        assert!(refused.contains(cause), "{tool} {arguments}: {refused}");
    }
    // A queue that grows is seen.
    dir.write("out/default/queue/id:000900,src:000000,time:9,execs:9", "n");
    assert_eq!(agent.ask("status", json!({})).unwrap()["functions"], json!([3, 3]));
}

#[test]
fn a_client_that_does_not_behave_is_answered() {
    let dir = TestDir::with_seed("a");
    dir.fuzz("-s 1 -E 5", &target("lines.c", "-g -O0"), "").run().expect(0);
    let mut agent = Agent::start(&dir, "out");
    // 100 MB without a line, then a request.
    let large = vec![b'['; 1 << 20];
    for _ in 0..100 {
        agent.input.as_mut().unwrap().write_all(&large).unwrap();
    }
    agent.send(b"");
    assert_eq!(agent.read()["error"]["code"], -32700);
    agent.send(b"\xff\xfe");
    assert_eq!(agent.read()["error"]["code"], -32700);
    assert_eq!(agent.request("ping", json!({}))["result"], json!({}));
    // A second client at the same time.
    let mut other = Agent::start(&dir, "out");
    assert_eq!(other.ask("bugs", json!({})).unwrap()["entries"], json!([]));
    assert!(agent.ask("status", json!({})).is_ok());
    drop(agent);
    // A target that is gone: what files say is still answered.
    dir.write("out/default/cmdline", "./gone\n");
    let mut agent = Agent::start(&dir, "out");
    assert!(agent.ask("stuck", json!({})).unwrap_err().contains("gone"));
    assert!(agent.ask("status", json!({})).unwrap()["next"][0].as_str().unwrap().contains("gone"));
}

#[test]
fn wrong_use_is_refused() {
    let dir = TestDir::with_seed("a");
    let refused = |words: &str, cause: &str, remedy: &str| {
        dir.ffuzz(&format!("mcp {words}")).run().refused(1, cause, remedy);
    };
    refused("", "missing: <OUT>", "--help");
    refused("none", "cannot read the folder none", "-o");
    dir.fuzz("-s 1 -E 5", &target("lines.c", "-g -O0"), "").run().expect(0);
    refused("--write out", "needs the control socket", "--control SOCKET");
    refused("--control s out", "--write", "--help");
}

/// The official client, with a handshake and by the revision that has none.
#[test]
fn the_official_client_lists_tools_and_asks() {
    use rmcp::ServiceExt as _;
    use rmcp::model::{CallToolRequestParams, ProtocolVersion};
    use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _};
    use rmcp::transport::TokioChildProcess;

    let dir = TestDir::with_seed("a");
    dir.fuzz("-s 1 -E 5", &target("lines.c", "-g -O0"), "").run().expect(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    for lifecycle in [None, Some(ClientLifecycleMode::Discover { preferred_versions })] {
        runtime.block_on(async {
            let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_ffuzz"));
            command.args(["mcp", "out"]).current_dir(dir.path(""));
            let transport = TokioChildProcess::new(command).unwrap();
            let client = match lifecycle {
                None => ().serve(transport).await.unwrap(),
                Some(mode) => ().serve_with_lifecycle(transport, mode).await.unwrap(),
            };
            let tools = client.list_all_tools().await.unwrap();
            assert!(tools.iter().any(|tool| tool.name == "stuck"), "{tools:?}");
            let request = CallToolRequestParams::new("status");
            let status = client.call_tool(request).await.unwrap();
            assert_eq!(status.is_error, Some(false));
            assert_eq!(status.structured_content.unwrap()["functions"], json!([1, 3]));
            let refused = client.call_tool(CallToolRequestParams::new("bug")).await.unwrap();
            assert_eq!(refused.is_error, Some(true));
            client.cancel().await.unwrap();
        });
    }
}
