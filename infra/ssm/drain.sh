#!/bin/sh
# Lets a GitLab Runner manager finish its jobs, and says in one line how far that got.
#
# The line is `lifecycle-reaper: <answer>`, followed by ` key=value` facts for people. The answers:
#   stopped           the jobs ended and the service is down
#   nothing-to-drain  there is no such unit, or it has not run since boot
#   aborted           the service is down, but not gracefully: jobs may have been cut
#   busy              jobs are still being finished, or another copy of this script is at work
#   unknown           systemd could not be asked, or its stop could not be made graceful
# The exit code is always 0: the line is the answer, an exit code would only be a second one.
#
# It may run any number of times, at once or one after the other. It keeps to what systemd 219 knows
# (no `--value`, no `--kill-whom`) and to POSIX sh. drain.yaml carries it and sets the variables below.
set -u
export LC_ALL=C

unit=${UNIT_NAME:-gitlab-runner.service}
wait_seconds=${WAIT_SECONDS:-2400}
stop_command=${STOP_COMMAND:-none}
unregister=${UNREGISTER:-false}
config=${RUNNER_CONFIG:-/etc/gitlab-runner/config.toml}

drop_in=zzz-lifecycle-reaper.conf # read last, so that nothing overrides it
answered=no

answer() {
  answered=yes
  printf 'lifecycle-reaper: %s unit=%s%s\n' "$1" "$unit" "${2:+ $2}"
  exit 0
}

# shellcheck disable=SC2329 # called by the trap
last_word() {
  [ "$answered" = yes ] || answer unknown "reason=script-ended-early"
}

# Seconds since boot: a clock that nobody sets.
uptime_seconds() {
  read -r seconds _ </proc/uptime
  echo "${seconds%%.*}"
}

take_lock() {
  exec 9>"/run/lifecycle-reaper-$(printf '%s' "$unit" | tr -c 'A-Za-z0-9.@_-' '_').lock" ||
    answer unknown "reason=no-lock-file"
  flock -n 9 || answer busy "reason=another-copy-is-at-work"
}

look() {
  shown=$(systemctl show "$unit" -p LoadState -p ActiveState -p SubState -p Result -p ExecMainPID \
    -p ExecMainCode -p ExecMainStatus -p ExecMainStartTimestampMonotonic) || shown=
  load=$(shown_value LoadState)
  active=$(shown_value ActiveState)
  result=$(shown_value Result)
  main_pid=$(shown_value ExecMainPID)
  main_code=$(shown_value ExecMainCode)
  main_status=$(shown_value ExecMainStatus)
  started=$(shown_value ExecMainStartTimestampMonotonic)
  facts="active=$active sub=$(shown_value SubState) result=$result"
  facts="$facts main_pid=$main_pid main_code=$main_code main_status=$main_status"
}

shown_value() {
  printf '%s\n' "$shown" | sed -n "s/^$1=//p"
}

# Runner exits 0 after SIGTERM too, once its jobs are aborted: then only its own log tells the difference.
jobs_were_cut() {
  command -v journalctl >/dev/null 2>&1 || return 1
  journalctl --quiet --no-pager --boot --output=cat "_PID=$main_pid" 2>/dev/null |
    grep -q -i -e 'forceful shutdown' -e 'graceful shutdown not finished'
}

# What the unit's state and result prove; `busy` while it lives.
judge() {
  case $active in
    active | activating | reloading | refreshing | deactivating) echo busy ;;
    failed) echo aborted ;;
    inactive)
      if [ "$load" = not-found ]; then
        echo nothing-to-drain
      elif [ "$result" != success ]; then
        echo aborted
      elif [ "${started:-0}" = 0 ]; then
        echo nothing-to-drain
      elif [ "$main_code" != 1 ] || [ "$main_status" != 0 ]; then
        echo aborted # ended by a signal; systemd calls SIGTERM a success
      elif jobs_were_cut; then
        echo aborted
      else
        echo stopped
      fi
      ;;
    *) echo unknown ;;
  esac
}

# The stop: SIGQUIT to the main process alone, all the time it takes, no restart afterwards. A
# timeout of 0 means none in every version; `infinity` is newer than 219.
make_stop_graceful() {
  write_drop_in "$unit" '[Service]
ExecStop=
KillMode=mixed
KillSignal=SIGQUIT
TimeoutStopSec=0
Restart=no'
  # systemd forgets how a unit ended once nothing refers to it: keep a reference (only an ordering)
  write_drop_in system.slice "[Unit]
Before=$unit"
  systemctl daemon-reload || return 1

  shown=$(systemctl show "$unit" -p KillMode -p KillSignal -p Restart -p TimeoutStopUSec) || return 1
  case $(shown_value TimeoutStopUSec) in 0 | infinity) ;; *) return 1 ;; esac
  [ "$(shown_value KillMode) $(shown_value KillSignal) $(shown_value Restart)" = "mixed 3 no" ]
}

write_drop_in() {
  mkdir -p "/run/systemd/system/$1.d" && printf '%s\n' "$2" >"/run/systemd/system/$1.d/$drop_in"
}

# The manager's own Elastic IP (infra/instance) is given back once the unit is down: not done before.
gives_back_address() {
  [ "$(systemctl show lifecycle-reaper-address.service -p ActiveState)" = ActiveState=deactivating ]
}

wait_until_down() {
  deadline=$(($(uptime_seconds) + wait_seconds))
  look
  while { [ "$(judge)" = busy ] || gives_back_address; } && [ "$(uptime_seconds)" -lt "$deadline" ]; do
    sleep 1
    look
  done
}

# Another kind of manager: its command drains and says by its exit code what came of it.
run_stop_command() {
  timeout "$wait_seconds" sh -c "$stop_command" 9>&- >&2
  code=$?
  case $code in
    0) answer stopped "by=command" ;;
    69) answer nothing-to-drain "by=command" ;;
    70) answer aborted "by=command" ;;
    75 | 124) answer busy "by=command code=$code" ;;
    *) answer unknown "by=command code=$code" ;;
  esac
}

# Takes this one manager off GitLab's list: DELETE /runners/managers with its own system id. The
# runner and its token belong to the other managers as well and are never touched; so tokens that
# name no separate manager (anything but glrt-) are left alone.
unregister_manager() {
  removed=0
  system_id=$(tr -d '[:space:]' <"${config%/*}/.runner_system_id") || return 1
  plain "$system_id" || return 1
  tab=$(printf '\t')
  lines=$(mktemp) && runners_in_config >"$lines" || return 1
  while IFS=$tab read -r url token ca; do
    case $token in glrt-?*) plain "$token" || continue ;; *) continue ;; esac
    printf '{"token":"%s","system_id":"%s"}' "$token" "$system_id" |
      curl --silent --show-error --fail --max-time 20 --retry 2 ${ca:+--cacert "$ca"} --request DELETE \
        --header 'Content-Type: application/json' --data @- "${url%/}/api/v4/runners/managers" >&2 &&
      removed=$((removed + 1))
  done <"$lines"
  rm -f "$lines"
}

plain() {
  case $1 in '' | *[!A-Za-z0-9_.-]*) return 1 ;; esac
}

# url, token and CA file of each [[runners]] of config.toml, one a line.
runners_in_config() {
  awk '
    function out() { if (token != "") print url "\t" token "\t" ca; url = token = ca = "" }
    function text(line) { sub(/^[^"]*"/, "", line); sub(/".*$/, "", line); return line }
    /^[ \t]*\[\[runners\]\]/ { out(); here = 1; next }
    /^[ \t]*\[/ { here = 0 }
    here && /^[ \t]*url[ \t]*=/ { url = text($0) }
    here && /^[ \t]*token[ \t]*=/ { token = text($0) }
    here && /^[ \t]*tls-ca-file[ \t]*=/ { ca = text($0) }
    END { out() }' "$config"
}

trap last_word EXIT
trap 'exit 0' HUP INT TERM
take_lock
[ "$stop_command" = none ] || run_stop_command

look
[ -n "$load" ] || answer unknown "reason=systemd-does-not-answer"
if [ "$(judge)" = busy ]; then
  make_stop_graceful || answer unknown "reason=stop-is-not-graceful"
  systemctl --no-block stop "$unit" || answer unknown "reason=stop-refused"
fi
wait_until_down

verdict=$(judge)
if gives_back_address; then verdict=busy; fi
if [ "$verdict" = stopped ] && [ "$unregister" = true ]; then
  if unregister_manager; then facts="$facts unregistered=$removed"; else facts="$facts unregistered=failed"; fi
fi
answer "$verdict" "$facts"
