#!/bin/sh
# SPDX-License-Identifier: MIT-0
# One shard of a scan for each task of an array, numbered from 0:
#
#	sbatch --array=0-7 slurm.sh TREE LOGS 8
#
# A task that is requeued, or run again, goes on where it was. Then:
#
#	missing=$(pinion merge --missing LOGS/shard.*)
#	[ -z "$missing" ] || sbatch --array="$missing" slurm.sh TREE LOGS 8
#	pinion merge LOGS/shard.* >findings.json
#SBATCH --job-name=pinion-scan
#SBATCH --cpus-per-task=4
#SBATCH --requeue
#SBATCH --signal=B:TERM@60
set -u
tree=$1 logs=$2 count=$3

# In the background, as a shell heeds no signal while it runs a program. The
# scan ends within seconds, and has noted all that is done.
trap 'kill -TERM "$scan" 2>/dev/null' TERM
pinion scan --shard-from-env="$count" --checkpoint="$logs/shard.$SLURM_ARRAY_TASK_ID" --resume \
	--workers="${SLURM_CPUS_PER_TASK:-1}" --format=json "$tree" >/dev/null &
scan=$!
wait "$scan"
status=$?
# A signal has ended the wait, and not yet the scan.
while kill -0 "$scan" 2>/dev/null; do
	wait "$scan"
	status=$?
done
# Findings are no failure of the task; 3: stopped, to be run again.
[ "$status" -eq 1 ] && status=0
exit "$status"
