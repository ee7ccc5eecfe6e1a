/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: a job of several steps, each cut into parts that run side by side: the
 * workers of a thread pool resize an image at medium, first across, some rows
 * each, and when all are done down, some columns each.
 * The filter is Lanczos' with three lobes; images are PGM, "P5" with 8 bits.
 * Try:   examples/resize_image photo.pgm small.pgm 800 600
 */
#include <errno.h>
#include <math.h>
#include <pinion/pinion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BANDS = 16, SIDE_MAX = 16384, LOBES = 3 };

/* Lines of `from_count` pixels become columns of `to_count`. */
struct step {
	const float *from;
	float *to;
	uint32_t from_count, to_count, line_count;
};

struct band {
	struct pinion_group_task task; /* first, so that it leads back here */
	const struct step *step;
	uint32_t number;
};

static double lanczos(double x)
{
	double angle = x * acos(-1);

	return fabs(x) < 1e-9	  ? 1
		: fabs(x) < LOBES ? LOBES * sin(angle) * sin(angle / LOBES) / (angle * angle)
				  : 0;
}

/* Pixel `index` of all of a band's lines: the weights are the same. */
static void resize_pixel(const struct step *step, uint32_t index, uint32_t first, uint32_t end)
{
	double ratio = (double)step->from_count / step->to_count;
	double width = ratio > 1 ? ratio : 1; /* fewer pixels: each takes in more */
	double centre = (index + 0.5) * ratio - 0.5;
	long lowest = (long)fmax(ceil(centre - LOBES * width), 0);
	long highest = (long)fmin(floor(centre + LOBES * width), step->from_count - 1.0);
	double total = 0;

	for (long i = lowest; i <= highest; i++) {
		total += lanczos(((double)i - centre) / width);
	}
	for (long i = lowest; i <= highest; i++) {
		float weight = (float)(lanczos(((double)i - centre) / width) / total);

		for (size_t line = first; line < end; line++) {
			step->to[(size_t)index * step->line_count + line] +=
				weight * step->from[line * step->from_count + (size_t)i];
		}
	}
}

static int resize_band(struct pinion_group_task *task)
{
	const struct band *band = (struct band *)task;
	uint32_t first = band->step->line_count * band->number / BANDS;
	uint32_t end = band->step->line_count * (band->number + 1) / BANDS;

	for (uint32_t i = 0; i < band->step->to_count; i++) {
		resize_pixel(band->step, i, first, end);
	}
	return 0;
}

/* Returns when all bands are done: the next step needs all of them. */
static int run_step(struct pinion_runtime *thread_pool, const struct step *step)
{
	struct band bands[BANDS];
	struct pinion_group group;
	int rc = pinion_group_init(&group, thread_pool, 0);

	for (uint32_t i = 0; i < BANDS && rc == 0; i++) {
		bands[i] = (struct band){{.run = resize_band}, step, i};
		rc = pinion_group_spawn(&group, &bands[i].task);
	}
	(void)pinion_group_wait(&group, UINT64_MAX);
	return rc;
}

/* The image, then the values between the steps, then the result. */
static int resize(float *floats, const uint32_t from[2], const uint32_t to[2])
{
	struct step across = {floats, floats + (size_t)from[0] * from[1], from[0], to[0], from[1]};
	struct step down = {across.to, across.to + (size_t)to[0] * from[1], from[1], to[1], to[0]};
	struct pinion_runtime *thread_pool = NULL;
	int rc = pinion_thread_pool_create(NULL, NULL, &thread_pool);

	rc = rc == 0 ? run_step(thread_pool, &across) : rc;
	rc = rc == 0 ? run_step(thread_pool, &down) : rc;
	pinion_runtime_destroy(thread_pool);
	return rc;
}

static int resize_file(FILE *in, FILE *out, const uint32_t to[2])
{
	uint32_t from[2];
	size_t before, after;
	float *floats;
	int rc;

	if (fscanf(in, "P5 %5u %5u 255", &from[0], &from[1]) != 2 || fgetc(in) == EOF ||
		from[0] - 1 >= SIDE_MAX || from[1] - 1 >= SIDE_MAX) {
		return -EINVAL;
	}
	before = (size_t)from[0] * from[1];
	after = before + (size_t)to[0] * from[1];
	floats = calloc(after + (size_t)to[0] * to[1], sizeof(*floats));
	for (size_t i = 0; floats != NULL && i < before; i++) {
		floats[i] = (float)fgetc(in);
	}
	rc = floats == NULL ? -ENOMEM : feof(in) ? -EIO : resize(floats, from, to);
	if (rc == 0) {
		fprintf(out, "P5\n%u %u\n255\n", to[0], to[1]);
		for (size_t i = after; i < after + (size_t)to[0] * to[1]; i++) {
			fputc((int)lroundf(fminf(fmaxf(floats[i], 0), 255)), out);
		}
		rc = fflush(out) == 0 ? 0 : -EIO;
	}
	free(floats);
	return rc;
}

int main(int argc, char **argv)
{
	uint32_t to[2] = {0};
	FILE *in, *out;
	int rc;

	if (argc != 5 || sscanf(argv[3], "%5u", &to[0]) + sscanf(argv[4], "%5u", &to[1]) != 2 ||
		to[0] - 1 >= SIDE_MAX || to[1] - 1 >= SIDE_MAX) {
		fprintf(stderr, "usage: resize_image FROM.pgm TO.pgm WIDTH HEIGHT, each 1 … %d\n",
			SIDE_MAX);
		return 2;
	}
	in = fopen(argv[1], "rb");
	out = in != NULL ? fopen(argv[2], "wb") : NULL;
	rc = out != NULL ? resize_file(in, out, to) : -errno;
	if (rc != 0) {
		fprintf(stderr, "resize_image: %s to %s: %s\n", argv[1], argv[2], strerror(-rc));
		return EXIT_FAILURE;
	}
	printf("%s has %u by %u pixels\n", argv[2], to[0], to[1]);
	return EXIT_SUCCESS;
}
