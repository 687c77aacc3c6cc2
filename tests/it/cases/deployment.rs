//! The deployment as text: what the function relies on there.

use lifecycle_reaper::config::Config;

fn read(path: &str) -> String {
    std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR")))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every file under `infra/` with this ending.
fn texts(ending: &str) -> Vec<(String, String)> {
    let mut found = vec![];
    let mut folders = vec![format!("{}/infra", env!("CARGO_MANIFEST_DIR"))];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path().display().to_string();
            if std::path::Path::new(&path).is_dir() {
                if !path.contains("/.") && !path.contains("/tests") {
                    folders.push(path);
                }
            } else if path.ends_with(ending) {
                found.push((path.clone(), std::fs::read_to_string(&path).expect("UTF-8")));
            }
        }
    }
    found
}

#[test]
fn lc_56_partial_replies_are_switched_on_wherever_a_queue_triggers() {
    let terraform = texts(".tf");
    let mappings: Vec<_> = terraform
        .iter()
        .filter(|(_, text)| text.contains("resource \"aws_lambda_event_source_mapping\""))
        .collect();
    assert!(!mappings.is_empty());
    for (path, text) in mappings {
        let count = text
            .matches("resource \"aws_lambda_event_source_mapping\"")
            .count();
        assert_eq!(
            text.matches("function_response_types = [\"ReportBatchItemFailures\"]")
                .count(),
            count,
            "{path}"
        );
    }
    let sam = read("infra/sam/template.yaml");
    assert!(
        sam.matches("Type: SQS").count() + sam.matches("AWS::Lambda::EventSourceMapping").count()
            >= 1
    );
    assert_eq!(
        sam.matches("ReportBatchItemFailures").count(),
        sam.matches("FunctionResponseTypes").count()
    );
    assert!(sam.contains("FunctionResponseTypes"));
}

#[test]
fn lc_56_the_queue_has_a_redrive_policy_and_time_enough() {
    let queues = read("infra/terraform/queues.tf");
    assert!(
        queues.contains("redrive_policy")
            && queues.contains("maxReceiveCount")
            && queues.contains("deadLetterTargetArn")
    );
    let locals = read("infra/terraform/locals.tf");
    let visibility = locals
        .lines()
        .find(|l| l.trim_start().starts_with("visibility_timeout_seconds"))
        .expect("a visibility timeout");
    assert!(
        visibility
            .replace(' ', "")
            .contains("6*var.function_timeout_seconds"),
        "{visibility}"
    );
    let sam = read("infra/sam/template.yaml");
    assert!(
        sam.contains("RedrivePolicy")
            && sam.contains("maxReceiveCount")
            && sam.contains("VisibilityTimeout")
    );
    // What leaves the work queue keeps its age: the dead-letter queue must keep it longer.
    assert!(queues.contains("1209600"));
}

#[test]
fn lc_01_no_deployment_relies_on_a_recursive_loop() {
    for (path, text) in texts(".tf").into_iter().chain(texts(".yaml")) {
        assert!(
            !text.contains("recursion_config") && !text.contains("RecursiveLoop"),
            "{path}: the function never sends to its own trigger from a record"
        );
    }
}

#[test]
fn lc_57_the_receive_count_covers_the_drain() {
    let locals = read("infra/terraform/locals.tf");
    let formula = locals
        .lines()
        .find(|l| l.trim_start().starts_with("max_receive_count"))
        .expect("a formula");
    assert!(formula.contains("var.drain_timeout_seconds"), "{formula}");
    let function = read("infra/terraform/function.tf");
    assert!(
        function.contains("MAX_RECEIVE_COUNT"),
        "the function reads the queue's own count"
    );
}

#[test]
fn lc_57_an_inconsistent_count_is_warned_of_at_start() {
    for (count, timeout, warned) in [
        ("3", "7200", true),
        ("8", "7200", false),
        ("7", "7200", true),
        ("200", "172800", false),
        ("100", "172800", true),
        ("1", "60", false),
    ] {
        let vars = [
            ("AUTO_SCALING_GROUPS", "g"),
            ("LIFECYCLE_HOOKS", "h"),
            ("DRAIN", "observe"),
            ("MAX_RECEIVE_COUNT", count),
            ("DRAIN_TIMEOUT_SECONDS", timeout),
        ];
        let config =
            Config::from_vars(vars.map(|(k, v)| (k.to_owned(), v.to_owned()))).expect("legal");
        let is_warned = config
            .warnings()
            .iter()
            .any(|w| w.contains("MAX_RECEIVE_COUNT") && w.contains("DRAIN_TIMEOUT_SECONDS"));
        assert_eq!(is_warned, warned, "{count} deliveries, {timeout} s");
    }
}

#[test]
fn lc_38_the_document_bounds_its_own_run() {
    let document = read("infra/ssm/drain.yaml");
    assert!(
        document.contains("timeoutSeconds"),
        "the step's own limit, or SSM's hour binds"
    );
}

#[test]
fn lc_61_no_partition_is_written_down() {
    let sources = ["src/aws", "src/handler", "src/reap", "src/reconcile"]
        .into_iter()
        .flat_map(|folder| {
            std::fs::read_dir(format!("{}/{folder}", env!("CARGO_MANIFEST_DIR")))
                .expect("a folder")
                .map(|e| e.expect("an entry").path())
        });
    let top = std::fs::read_dir(format!("{}/src", env!("CARGO_MANIFEST_DIR")))
        .expect("a folder")
        .map(|e| e.expect("an entry").path());
    for path in sources
        .chain(top)
        .filter(|p| p.extension().is_some_and(|e| e == "rs"))
    {
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        for line in text.lines().filter(|l| !l.trim_start().starts_with("//")) {
            // A documentation link is no endpoint.
            let is_endpoint = line.contains(".amazonaws.com") && !line.contains("docs.aws");
            assert!(
                !line.contains("arn:aws:") && !is_endpoint,
                "{}: {line}",
                path.display()
            );
        }
    }
    for (path, text) in texts(".tf") {
        assert!(
            !text.contains("\"arn:aws:") && !text.contains(".amazonaws.com/"),
            "{path}"
        );
    }
}

#[test]
fn lc_68_the_package_starts() {
    let function = read("infra/terraform/function.tf");
    assert!(
        function.contains("\"provided.al2023\"")
            && function.contains("\"bootstrap\"")
            && function.contains("architectures")
    );
    assert!(read("infra/sam/template.yaml").contains("provided.al2023"));
    let manifest = read("Cargo.toml");
    if manifest.contains("publish = false\nautobins = false") {
        return; // a copy without the binaries
    }
    assert!(manifest.contains("name = \"bootstrap\""));
    let kms = texts(".tf")
        .iter()
        .any(|(_, text)| text.contains("kms:Decrypt"));
    assert!(kms, "the right to decrypt the function's environment");
}

#[test]
fn lc_54_a_panic_unwinds_in_release() {
    let manifest = read("Cargo.toml");
    let release = manifest
        .split("[profile.release]")
        .nth(1)
        .expect("a release profile");
    assert!(release.contains("panic = \"unwind\"") && !manifest.contains("panic = \"abort\""));
}
