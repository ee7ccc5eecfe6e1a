/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: ending requests early: by a deadline, one by one, and all of a file;
 * and that each of them runs its task once, with the reason as its result.
 *
 * Try:   examples/deadline
 *
 * Timeouts stand in for reads of a disk that does not answer: nothing but their
 * deadline or a cancel ends them.
 */
#include <pinion/pinion.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

enum { LATE = 4, CANCELLED = 3, OF_FILE = 5, COUNT = LATE + CANCELLED + OF_FILE };

static struct pinion_runtime *runtime;
static struct pinion_request requests[COUNT];
static struct pinion_file files[2]; /* a file is its struct */
static sem_t ended;
static sem_t cancel_ended;

static int on_end(struct pinion_task *task)
{
	(void)task;
	sem_post(&ended);
	return 0;
}

static int on_cancel_end(struct pinion_task *task)
{
	(void)task;
	sem_post(&cancel_ended);
	return 0;
}

static void await(sem_t *semaphore, int count)
{
	while (count > 0) {
		count -= sem_wait(semaphore) == 0 ? 1 : 0;
	}
}

static int submit(int index, struct pinion_file *file, uint64_t deadline_ns)
{
	struct pinion_request *request = &requests[index];

	request->task.run = on_end;
	request->op = PINION_OP_TIMEOUT;
	request->file = file;
	request->deadline_ns = deadline_ns;
	return pinion_request_submit(runtime, request);
}

static int cancel_file(struct pinion_file *file)
{
	struct pinion_request request = {
		.task.run = on_cancel_end, .op = PINION_OP_CANCEL, .file = file};
	int rc = pinion_request_submit(runtime, &request);

	if (rc == 0) {
		await(&cancel_ended, 1);
		rc = (int)request.result;
	}
	return rc;
}

static int count_results(int first, int count, const char *name)
{
	int found = 0;

	for (int i = first; i < first + count; i++) {
		found += strcmp(strerror((int)-requests[i].result), name) == 0;
	}
	return found;
}

static int fail(const char *what, int error)
{
	fprintf(stderr, "deadline: %s: %s\n", what, strerror(-error));
	return 1;
}

int main(int argc, char **argv)
{
	struct pinion_config config;
	uint64_t start_ns;
	int found;
	int rc;

	if (argc > 1 && strcmp(argv[1], "--help") == 0) {
		puts("usage: deadline");
		return 0;
	}
	pinion_config_init(&config);
	config.worker_count = 2;
	rc = pinion_runtime_create(&config, &runtime);
	if (rc < 0 || sem_init(&ended, 0, 0) != 0 || sem_init(&cancel_ended, 0, 0) != 0) {
		return fail("cannot start", rc);
	}
	start_ns = pinion_clock_now_ns();
	for (int i = 0; i < COUNT && rc == 0; i++) {
		uint64_t after_ms = i < LATE ? (uint64_t)i + 1 : 3600 * 1000;

		rc = submit(i, &files[i < LATE + CANCELLED ? 0 : 1], start_ns + after_ms * 1000000);
	}
	if (rc < 0) {
		return fail("cannot submit", rc);
	}
	await(&ended, LATE);
	printf("%d ended by their deadlines after %.1f ms\n",
		count_results(0, LATE, "Timer expired"),
		(double)(pinion_clock_now_ns() - start_ns) / 1e6);
	for (int i = LATE; i < LATE + CANCELLED; i++) {
		rc = pinion_request_cancel(runtime, &requests[i]);
	}
	await(&ended, CANCELLED);
	printf("%d cancelled one by one\n", count_results(LATE, CANCELLED, "Operation canceled"));
	found = cancel_file(&files[1]);
	await(&ended, OF_FILE);
	printf("%d cancelled with their file, %d found\n",
		count_results(LATE + CANCELLED, OF_FILE, "Operation canceled"), found);
	rc = pinion_request_cancel(runtime, &requests[0]);
	printf("cancelled when it was over: %s\n", strerror(-rc));
	pinion_runtime_destroy(runtime);
	return 0;
}
