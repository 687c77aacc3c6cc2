//! Certificate validation is on in the HTTPS client that the function calls AWS with: a server that the trust store
//! doesn't vouch for, by this name and today, is told nothing.
//!
//! The SDK reads a process's trust store once, from where the environment says. So each case is asked by a process of
//! its own: this test binary, running `asks` alone.

use aws_sdk_ec2::{config::retry::RetryConfig, error::DisplayErrorContext};
use lifecycle_reaper::aws::{Aws, from_environment};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use std::{
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(10);
const ANSWER: &str = "<DescribeKeyPairsResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\
    <requestId>0</requestId><keySet/></DescribeKeyPairsResponse>";

fn file(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/it/tls", name]
        .iter()
        .collect()
}

/// What came of one call to a server on loopback.
#[derive(Debug)]
struct Outcome {
    /// What the caller saw: `answered`, or the error with all of its causes.
    said: String,
    /// What the server was told after the handshake; nothing if there was none.
    told: String,
}

/// Calls `https://localhost`, which shows `certificate`; `authority` is the trust store, or without one the system's.
fn call(certificate: &str, authority: Option<&str>) -> Outcome {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let url = format!(
        "https://localhost:{}",
        listener.local_addr().expect("an address").port()
    );
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let server = scope.spawn(|| serve(&listener, &config(certificate), &is_over));
        let asked = Command::new(std::env::current_exe().expect("this binary"))
            .args(["--exact", "tls::asks", "--ignored", "--nocapture"])
            .env_clear()
            .env("AWS_ENDPOINT_URL", url)
            .env("AWS_REGION", "eu-central-1")
            .env("AWS_ACCESS_KEY_ID", "AKIDINVENTED")
            .env("AWS_SECRET_ACCESS_KEY", "invented")
            .envs(authority.map(|name| ("SSL_CERT_FILE", file(name))))
            .output();
        is_over.store(true, SeqCst);
        let told = server.join().expect("the server ends");
        let said = asked.expect("the process runs").stdout;
        Outcome {
            said: String::from_utf8_lossy(&said).into_owned(),
            told,
        }
    })
}

fn config(certificate: &str) -> Arc<ServerConfig> {
    let chain = CertificateDer::from_pem_file(file(certificate)).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(file("server.key")).expect("a key");
    let config = ServerConfig::builder().with_no_client_auth();
    Arc::new(
        config
            .with_single_cert(vec![chain], key)
            .expect("they belong together"),
    )
}

/// Answers until it `is_over`; returns what it was told.
fn serve(listener: &TcpListener, config: &Arc<ServerConfig>, is_over: &AtomicBool) -> String {
    listener.set_nonblocking(true).expect("a listener");
    let mut told = vec![];
    loop {
        match listener.accept() {
            // A handshake that fails is what most cases are about.
            Ok((stream, _)) => drop(answer(stream, config, &mut told)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if is_over.load(SeqCst) {
                    return String::from_utf8_lossy(&told).into_owned();
                }
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// One request, which is short enough for one read of a kilobyte or two.
fn answer(
    stream: TcpStream,
    config: &Arc<ServerConfig>,
    told: &mut Vec<u8>,
) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let session = ServerConnection::new(Arc::clone(config)).map_err(std::io::Error::other)?;
    let mut stream = StreamOwned::new(session, stream);
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(told).contains("Action=") {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            length => told.extend_from_slice(&buffer[..length]),
        }
    }
    let length = ANSWER.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: {length}\r\n\r\n{ANSWER}"
    )?;
    stream.flush()
}

/// The other process: one call with the client that the function makes of its environment.
#[test]
#[ignore = "run by the tests below, in a process and an environment of its own"]
fn asks() {
    let aws = Aws::new(from_environment(&std::env::vars().collect()));
    let once = aws_sdk_ec2::Config::builder().retry_config(RetryConfig::disabled());
    let call = aws.ec2().describe_key_pairs().customize();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    match runtime.block_on(call.config_override(once).send()) {
        Ok(_) => println!("answered"),
        Err(error) => println!("{}", DisplayErrorContext(error)),
    }
}

#[track_caller]
fn is_refused(outcome: &Outcome, reason: &str) {
    assert!(
        outcome.said.contains("invalid peer certificate") && outcome.said.contains(reason),
        "{outcome:?}"
    );
    assert_eq!(
        outcome.told, "",
        "a server that isn't trusted was told something"
    );
}

#[test]
fn a_server_that_the_trust_store_vouches_for_is_called() {
    let outcome = call("localhost.pem", Some("authority.pem"));
    assert!(outcome.said.contains("answered"), "{outcome:?}");
    assert!(
        outcome.told.contains("Action=DescribeKeyPairs"),
        "{outcome:?}"
    );
}

#[test]
fn a_server_of_an_authority_that_the_system_does_not_know_is_refused() {
    is_refused(&call("localhost.pem", None), "UnknownIssuer");
}

#[test]
fn a_server_of_another_authority_than_the_chosen_one_is_refused() {
    is_refused(
        &call("localhost.pem", Some("stranger.pem")),
        "UnknownIssuer",
    );
}

#[test]
fn a_server_with_the_certificate_of_another_name_is_refused() {
    let outcome = call("another-host.pem", Some("authority.pem"));
    is_refused(&outcome, "not valid for name");
}

#[test]
fn a_server_with_an_expired_certificate_is_refused() {
    is_refused(&call("expired.pem", Some("authority.pem")), "expired");
}
