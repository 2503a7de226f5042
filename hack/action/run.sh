#!/usr/bin/env bash
# Runs scenarios, and leaves the results in DIR/results: the text of the log and
# JUnit's XML. A table goes to the job's summary. For action.yml.
#   SCENARIOS="FILE|DIR..." ARGS="..." run.sh DIR
set -uo pipefail
results=$1/results
mkdir -p "$results"
echo "junit=$results/junit.xml" >>"${GITHUB_OUTPUT:-/dev/null}"
# Both are lists that the shell is to split.
# shellcheck disable=SC2086
"$1/drydock" run $ARGS --report-junit "$results/junit.xml" --report-summary "${GITHUB_STEP_SUMMARY:-/dev/null}" $SCENARIOS |
	tee "$results/output.txt"
exit "${PIPESTATUS[0]}"
