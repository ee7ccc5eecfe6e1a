/* SPDX-License-Identifier: MIT */
/*
 * The thread that talks to other ranks, by MPI.
 */
#include "tools/mpi/job.h"

#include "tools/mpi/stealing.h"
#include "tools/options.h"
#include "tools/report.h"

#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	/* Between two looks for messages: without work, and with some. */
	LOOK_IDLE_NS = 20 * 1000,
	LOOK_BUSY_NS = 200 * 1000,
	LOOK_COLLECTIVE_NS = 1000 * 1000,
};

/* A message that may not have left yet. */
struct outgoing {
	struct outgoing *next;
	MPI_Request request;
	char bytes[];
};

static struct {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* [lock:lock] by the thread of messages */
	bool has_begun; /* or failed */
	bool has_failed;
	bool knows_start;
	bool may_start;
	int start_status;
	bool has_sums;
	bool has_agreed;
	/* [lock:lock] by the main thread */
	bool is_started;
	bool wants_sums;
	bool is_done;
	bool may_leave;
	/* [lock:lock] by one, then by the other */
	uint64_t sums[JOB_SUMS];
	int status;
	int lacks; /* 0: the log is whole */
	/* [const] once it has begun */
	int rank;
	int count;
	struct parts *parts;
	/* The thread's */
	struct stealing stealing;
	struct outgoing *outgoing;
	char *incoming;
	size_t incoming_capacity;
	MPI_Request receive;
	MPI_Status received; /* of the message that is coming */
	bool is_receiving;
} job = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void pause_ns(long ns)
{
	struct timespec pause = {.tv_nsec = ns};

	nanosleep(&pause, NULL);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Sets a flag of the struct, and wakes the thread that waits for it. */
static void set(bool *flag)
{
	pthread_mutex_lock(&job.lock);
	*flag = true;
	pthread_cond_broadcast(&job.changed);
	pthread_mutex_unlock(&job.lock);
}

/* Until one of them is set; the second may be NULL. */
static void await(const bool *flag, const bool *other)
{
	pthread_mutex_lock(&job.lock);
	while (!*flag && (other == NULL || !*other)) {
		pthread_cond_wait(&job.changed, &job.lock);
	}
	pthread_mutex_unlock(&job.lock);
}

static bool is_set(const bool *flag)
{
	bool is_it;

	pthread_mutex_lock(&job.lock);
	is_it = *flag;
	pthread_mutex_unlock(&job.lock);
	return is_it;
}

/* Ends all ranks. */
static void give_up(int status)
{
	int shown = status < EXIT_STATUS_TROUBLE ? EXIT_STATUS_TROUBLE : status;

	MPI_Abort(MPI_COMM_WORLD, shown);
	_exit(shown);
}

/* ---- messages ---- */

static void send_message(
	void *arg, uint32_t rank, enum stealing_message message, const void *bytes, size_t length)
{
	struct outgoing *outgoing = malloc(sizeof(*outgoing) + length);

	(void)arg;
	if (outgoing == NULL) {
		report_line("%s: a message cannot be sent", report_reason(ENOMEM));
		give_up(EXIT_STATUS_TROUBLE);
	}
	if (length > 0) {
		memcpy(outgoing->bytes, bytes, length);
	}
	outgoing->next = job.outgoing;
	job.outgoing = outgoing;
	MPI_Isend(outgoing->bytes, (int)length, MPI_BYTE, (int)rank, (int)message, MPI_COMM_WORLD,
		&outgoing->request);
}

/* Frees messages that have left. */
static void test_outgoing(void)
{
	struct outgoing **link = &job.outgoing;

	while (*link != NULL) {
		struct outgoing *outgoing = *link;
		int has_left = 0;

		MPI_Test(&outgoing->request, &has_left, MPI_STATUS_IGNORE);
		if (has_left) {
			*link = outgoing->next;
			free(outgoing);
		} else {
			link = &outgoing->next;
		}
	}
}

/* Begins to receive a message, if there is one. */
static void begin_receive(void)
{
	int is_there = 0;
	int length = 0;

	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, &job.received);
	if (!is_there) {
		return;
	}
	MPI_Get_count(&job.received, MPI_BYTE, &length);
	if ((size_t)length > job.incoming_capacity) {
		free(job.incoming);
		job.incoming = malloc((size_t)length);
		job.incoming_capacity = (size_t)length;
	}
	if (length > 0 && job.incoming == NULL) {
		report_line("%s: a message of %d bytes cannot be received", report_reason(ENOMEM),
			length);
		give_up(EXIT_STATUS_TROUBLE);
	}
	MPI_Irecv(job.incoming, length, MPI_BYTE, job.received.MPI_SOURCE, job.received.MPI_TAG,
		MPI_COMM_WORLD, &job.receive);
	job.is_receiving = true;
}

/* Whether a message has come, which is answered then. */
static bool receive(void)
{
	int has_come = 0;
	int length = 0;

	if (!job.is_receiving) {
		begin_receive();
	}
	if (!job.is_receiving) {
		return false;
	}
	MPI_Test(&job.receive, &has_come, &job.received);
	if (!has_come) {
		return false;
	}
	job.is_receiving = false;
	MPI_Get_count(&job.received, MPI_BYTE, &length);
	if (!stealing_receive(&job.stealing, (uint32_t)job.received.MPI_SOURCE,
		    (enum stealing_message)job.received.MPI_TAG, job.incoming, (size_t)length)) {
		report_line("a message of rank %d is none of this version: start the same "
			    "pinion-mpi on all machines",
			job.received.MPI_SOURCE);
		give_up(EXIT_STATUS_TROUBLE);
	}
	return true;
}

static bool give(void *arg, struct output_text *out_work)
{
	(void)arg;
	return parts_give(job.parts, out_work);
}

static void take(void *arg, const void *bytes, size_t length)
{
	(void)arg;
	if (!parts_accept(job.parts, bytes, length)) {
		report_line("work of another rank is damaged, or there is no memory for it");
		give_up(EXIT_STATUS_TROUBLE);
	}
}

static bool is_idle(void *arg)
{
	(void)arg;
	return parts_are_idle(job.parts);
}

/* Until no rank has work, and no message is under way. */
static void share_work(void)
{
	static const struct stealing_ops ops = {send_message, give, take, is_idle};
	bool has_told = false;

	stealing_init(&job.stealing, (uint32_t)job.rank, (uint32_t)job.count, now_ns(), &ops, NULL);
	while (!stealing_has_left(&job.stealing) || job.outgoing != NULL) {
		bool has_come = receive();

		stealing_step(&job.stealing, now_ns());
		test_outgoing();
		if (stealing_has_ended(&job.stealing) && !has_told) {
			parts_end(job.parts);
			has_told = true;
		}
		if (!has_told && is_set(&job.is_done)) {
			give_up(job.status);
		}
		if (!has_come) {
			pause_ns(is_idle(NULL) ? LOOK_IDLE_NS : LOOK_BUSY_NS);
		}
	}
	stealing_fini(&job.stealing);
}

/* ---- what all agree on ---- */

/* A collective call that has begun; others may come to it much later. */
static void await_all(MPI_Request *request)
{
	int is_there = 0;

	for (;;) {
		MPI_Test(request, &is_there, MPI_STATUS_IGNORE);
		if (is_there) {
			return;
		}
		pause_ns(LOOK_COLLECTIVE_NS);
	}
}

static bool agree_on_start(void)
{
	int start[2] = {0, 0};
	MPI_Request request;

	if (job.rank == 0) {
		await(&job.is_started, &job.is_done);
		pthread_mutex_lock(&job.lock);
		start[0] = job.is_started ? 1 : 0;
		start[1] = job.status;
		pthread_mutex_unlock(&job.lock);
	}
	MPI_Ibcast(start, 2, MPI_INT, 0, MPI_COMM_WORLD, &request);
	await_all(&request);
	job.may_start = start[0] != 0;
	job.start_status = start[1];
	set(&job.knows_start);
	return start[0] != 0;
}

static void add_up(void)
{
	uint64_t sums[JOB_SUMS];
	MPI_Request request;

	await(&job.wants_sums, &job.is_done);
	if (!is_set(&job.wants_sums)) {
		give_up(job.status);
	}
	MPI_Iallreduce(job.sums, sums, JOB_SUMS, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
	await_all(&request);
	memcpy(job.sums, sums, sizeof(sums));
	set(&job.has_sums);
}

static void agree_on_status(void)
{
	MPI_Request request;
	int ours[2];
	int all[2];

	await(&job.is_done, NULL);
	ours[0] = job.status;
	ours[1] = job.lacks;
	MPI_Iallreduce(ours, all, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
	await_all(&request);
	job.status = all[0];
	job.lacks = all[1];
	set(&job.has_agreed);
}

static void leave_together(void)
{
	MPI_Request request;

	await(&job.may_leave, NULL);
	MPI_Ibarrier(MPI_COMM_WORLD, &request);
	await_all(&request);
	MPI_Finalize();
}

static void *talk(void *arg)
{
	int provided = MPI_THREAD_SINGLE;

	(void)arg;
	job.has_failed =
		MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS ||
		provided < MPI_THREAD_FUNNELED;
	if (!job.has_failed) {
		MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
		MPI_Comm_size(MPI_COMM_WORLD, &job.count);
	}
	set(&job.has_begun);
	if (job.has_failed) {
		return NULL;
	}
	if (agree_on_start()) {
		share_work();
		add_up();
	}
	agree_on_status();
	leave_together();
	free(job.incoming);
	return NULL;
}

/* ---- the main thread ---- */

bool job_begin(uint32_t *out_rank, uint32_t *out_count)
{
	sigset_t all;
	sigset_t before;
	int error;

	job.parts = parts_create();
	if (job.parts == NULL) {
		report_line("%s", report_reason(ENOMEM));
		return false;
	}
	/* Signals are for the command; threads of MPI inherit this. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&job.thread, NULL, talk, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error != 0) {
		report_line("no thread for messages: %s", report_reason(error));
		return false;
	}
	await(&job.has_begun, NULL);
	if (job.has_failed) {
		report_line("this MPI cannot be used by one of several threads "
			    "(MPI_THREAD_FUNNELED)");
		return false;
	}
	*out_rank = (uint32_t)job.rank;
	*out_count = (uint32_t)job.count;
	return true;
}

struct parts *job_parts(void)
{
	return job.parts;
}

void job_start(void)
{
	set(&job.is_started);
}

bool job_await_start(int *out_status)
{
	await(&job.knows_start, NULL);
	*out_status = job.start_status;
	return job.may_start;
}

void job_add_up(uint64_t values[JOB_SUMS])
{
	memcpy(job.sums, values, sizeof(job.sums));
	set(&job.wants_sums);
	await(&job.has_sums, NULL);
	memcpy(values, job.sums, sizeof(job.sums));
}

int job_agree(int status, bool is_whole, bool *out_are_whole)
{
	pthread_mutex_lock(&job.lock);
	job.status = status;
	job.lacks = is_whole ? 0 : 1;
	job.is_done = true;
	pthread_cond_broadcast(&job.changed);
	pthread_mutex_unlock(&job.lock);
	await(&job.has_agreed, NULL);
	*out_are_whole = job.lacks == 0;
	return job.status;
}

void job_leave(void)
{
	set(&job.may_leave);
	pthread_join(job.thread, NULL);
	parts_destroy(job.parts);
	job.parts = NULL;
}
