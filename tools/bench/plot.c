/* SPDX-License-Identifier: MIT */
/*
 * The gnuplot script and its run. The script contains the data, and is a file
 * in memory; gnuplot writes to a file beside the requested one and replaces
 * that when all went well.
 */
#include "tools/bench/plot.h"

#include "tools/output_text.h"
#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PLOT_BINS = 40,
	/* The largest over the least figure. */
	LOGARITHMIC_FROM = 10,
	PANELS_MAX = 64,
	PANEL_WIDTH = 460,
	PANEL_HEIGHT = 320,
};

/* The subject of a panel, and the points of it that have come. */
struct panel {
	const struct bench_subject *subject;
	uint32_t point_count;
	bool is_logarithmic;  /* the scale of its distribution */
	enum bench_axis axis; /* the axis of the points */
	struct bench_point first;
	/* Its medians, by each axis; the second point decides which. */
	struct output_text rows[BENCH_AXIS_COUNT];
};

struct bench_plot {
	char *path;
	char *temporary_path;
	int fd;			   /* of the temporary file */
	struct output_text blocks; /* of data, by name */
	struct panel panels[PANELS_MAX];
	uint32_t panel_count;
	bool is_finished;
};

/* What a shell would find. */
static bool has_gnuplot(void)
{
	const char *folders = getenv("PATH");
	char path[1024];

	while (folders != NULL && *folders != '\0') {
		size_t length = strcspn(folders, ":");
		int written = snprintf(path, sizeof(path), "%.*s/gnuplot", (int)length, folders);

		if (length > 0 && written < (int)sizeof(path) && access(path, X_OK) == 0) {
			return true;
		}
		folders += length + (folders[length] == ':');
	}
	return false;
}

int bench_plot_create(const char *path, struct bench_plot **out_plot)
{
	struct bench_plot *plot;
	int rc = 0;

	if (!has_gnuplot()) {
		report_line("--plot: gnuplot is missing (Debian: apt-get install gnuplot-nox)");
		return -ENOENT;
	}
	plot = calloc(1, sizeof(*plot));
	if (plot == NULL) {
		report_line("%s", report_reason(ENOMEM));
		return -ENOMEM;
	}
	plot->fd = -1;
	plot->path = strdup(path);
	if (plot->path == NULL || asprintf(&plot->temporary_path, "%s.XXXXXX", path) < 0) {
		plot->temporary_path = NULL;
		rc = -ENOMEM;
	} else {
		plot->fd = mkostemp(plot->temporary_path, O_CLOEXEC);
		rc = plot->fd < 0 ? -errno : 0;
	}
	if (rc != 0) {
		report_path(path, report_reason(rc));
		bench_plot_destroy(plot);
		return rc;
	}
	*out_plot = plot;
	return 0;
}

void bench_plot_destroy(struct bench_plot *plot)
{
	if (plot == NULL) {
		return;
	}
	if (plot->fd >= 0) {
		close(plot->fd);
		if (!plot->is_finished) {
			unlink(plot->temporary_path);
		}
	}
	for (uint32_t i = 0; i < plot->panel_count; i++) {
		for (int axis = 0; axis < BENCH_AXIS_COUNT; axis++) {
			output_text_free(&plot->panels[i].rows[axis]);
		}
	}
	output_text_free(&plot->blocks);
	free(plot->temporary_path);
	free(plot->path);
	free(plot);
}

/* ---- data ---- */

/* The bins of a picture, by equal differences or equal factors. */
struct scale {
	double edges[PLOT_BINS + 1];
};

/* The number whose power of PLOT_BINS that is, by halving: without libm. */
static double root(double power)
{
	double low = 1;
	double high = power;

	for (int i = 0; i < 64; i++) {
		double middle = (low + high) / 2;
		double product = 1;

		for (int bin = 0; bin < PLOT_BINS; bin++) {
			product *= middle;
		}
		if (product > power) {
			high = middle;
		} else {
			low = middle;
		}
	}
	return low;
}

/* A long tail would press all that is common into one bin. */
static bool scale_init(struct scale *scale, double low, double high)
{
	bool is_logarithmic = low > 0 && high > LOGARITHMIC_FROM * low;
	double factor = is_logarithmic ? root(high / low) : 1;
	double step = is_logarithmic ? 0 : (high - low) / PLOT_BINS;

	scale->edges[0] = low;
	for (int i = 0; i < PLOT_BINS; i++) {
		scale->edges[i + 1] = scale->edges[i] * factor + step;
	}
	return is_logarithmic;
}

/* The last one also counts values beyond its end. */
static int scale_bin(const struct scale *scale, double value)
{
	int bin = 0;

	while (bin < PLOT_BINS - 1 && value >= scale->edges[bin + 1]) {
		bin++;
	}
	return bin;
}

/*
 * Shares of the samples by value. Values beyond the last bin's end would press
 * all others together, and are counted in the last.
 */
static void add_histogram(struct output_text *text, const char *name, uint32_t panel,
	const struct samples *samples, const struct scale *scale)
{
	uint32_t bins[PLOT_BINS] = {0};

	for (uint32_t i = 0; i < samples->count; i++) {
		bins[scale_bin(scale, samples->values[i])]++;
	}
	output_text_format(text, "$%s_%u << EOD\n", name, panel);
	for (int i = 0; i < PLOT_BINS; i++) {
		output_text_format(text, "%.6g %.4g\n", (scale->edges[i] + scale->edges[i + 1]) / 2,
			100.0 * bins[i] / samples->count);
	}
	output_text_string(text, "EOD\n");
}

static void add_histograms(struct output_text *text, struct panel *panel, uint32_t index,
	const struct bench_results *results)
{
	const struct samples *ours = &results->samples[BENCH_OURS];
	const struct samples *floor = &results->samples[BENCH_FLOOR];
	double floor_low = samples_quantile(floor, 0.01);
	double floor_high = samples_quantile(floor, 0.99);
	double low = samples_quantile(ours, 0.01);
	double high = samples_quantile(ours, 0.99);
	struct scale scale;

	low = floor_low < low ? floor_low : low;
	high = floor_high > high ? floor_high : high;
	panel->is_logarithmic = scale_init(&scale, low, high);
	add_histogram(text, "ours", index, ours, &scale);
	add_histogram(text, "floor", index, floor, &scale);
}

static void add_row(struct output_text *text, uint32_t value, const struct bench_results *results)
{
	output_text_format(text, "%u", value);
	for (int side = BENCH_OURS; side <= BENCH_FLOOR; side++) {
		const struct samples *samples = &results->samples[side];

		output_text_format(text, " %.6g %.6g %.6g", samples_quantile(samples, 0.5),
			samples_quantile(samples, 0.25), samples_quantile(samples, 0.75));
	}
	output_text_string(text, "\n");
}

static struct bench_point point_of(const struct bench_setting *setting)
{
	struct bench_point point = setting->point;

	point.values[BENCH_WORKERS] = setting->facts.worker_count;
	return point;
}

/* Another point of the panel at hand: it goes along the axis that differs. */
static bool joins(
	struct panel *panel, const struct bench_subject *subject, const struct bench_point *point)
{
	uint32_t differing = 0;
	int axis = 0;

	if (panel->subject != subject) {
		return false;
	}
	for (int i = 0; i < BENCH_AXIS_COUNT; i++) {
		if (point->values[i] != panel->first.values[i]) {
			differing++;
			axis = i;
		}
	}
	if (differing != 1 || (panel->point_count > 1 && panel->axis != (enum bench_axis)axis)) {
		return false;
	}
	panel->axis = (enum bench_axis)axis;
	return true;
}

int bench_plot_add(struct bench_plot *plot, const struct bench_subject *subject,
	const struct bench_setting *setting, const struct bench_results *results)
{
	struct bench_point point;
	struct panel *panel;
	bool is_whole;

	if (plot == NULL) {
		return 0;
	}
	point = point_of(setting);
	panel = plot->panel_count == 0 ? NULL : &plot->panels[plot->panel_count - 1];
	if (panel == NULL || !joins(panel, subject, &point)) {
		if (plot->panel_count == PANELS_MAX) {
			report_line("--plot: only the first %d panels are drawn", PANELS_MAX);
			return 0;
		}
		panel = &plot->panels[plot->panel_count++];
		*panel = (struct panel){.subject = subject, .first = point};
	}
	panel->point_count++;
	if (panel->point_count == 1) {
		add_histograms(&plot->blocks, panel, plot->panel_count - 1, results);
	}
	is_whole = !plot->blocks.failed;
	for (int axis = 0; axis < BENCH_AXIS_COUNT; axis++) {
		add_row(&panel->rows[axis], point.values[axis], results);
		is_whole = is_whole && !panel->rows[axis].failed;
	}
	return is_whole ? 0 : -ENOMEM;
}

/* ---- the script ---- */

static void script_head(struct output_text *script, uint32_t panel_count)
{
	uint32_t columns = panel_count < 3 ? panel_count : 3;
	uint32_t rows = (panel_count + columns - 1) / columns;

	output_text_format(script,
		"set terminal svg size %u,%u dynamic noenhanced font 'sans-serif,12' "
		"background '#ffffff'\n"
		"set multiplot layout %u,%u\n"
		"set offsets graph 0.03, graph 0.03, 0, 0\n"
		"set grid ytics lc rgb '#dddddd'\n"
		"set yrange [0:]\n",
		columns * PANEL_WIDTH, rows * PANEL_HEIGHT, rows, columns);
}

static void script_distribution(
	struct output_text *script, const struct panel *panel, uint32_t index)
{
	const struct bench_subject *subject = panel->subject;

	output_text_format(script,
		"%s logscale x\nset xtics auto\nset autoscale xfixmin\nset autoscale xfixmax\n"
		"set key inside top right\n"
		"set title '%s'\nset xlabel '%s, %s is better'\nset ylabel '%% of figures'\n"
		"plot $ours_%u using 1:2 with fillsteps fs transparent solid 0.5 "
		"lc rgb '#1f77b4' title '%s', "
		"$floor_%u using 1:2 with fillsteps fs transparent solid 0.5 "
		"lc rgb '#ff7f0e' title '%s'\n",
		panel->is_logarithmic ? "set" : "unset", subject->name, subject->unit,
		subject->is_rate ? "more" : "less", index, subject->sides[BENCH_OURS], index,
		subject->sides[BENCH_FLOOR]);
}

static void script_sweep(struct output_text *script, const struct panel *panel, uint32_t index)
{
	const struct bench_subject *subject = panel->subject;
	const struct output_text *rows = &panel->rows[panel->axis];

	output_text_format(script, "$line_%u << EOD\n", index);
	output_text_append(script, rows->bytes, rows->length);
	output_text_format(script,
		"EOD\n"
		"set key inside bottom right\n" /* scales begin at 0, so there is room */
		"set logscale x 2\nset autoscale x\n"
		"set title '%s'\nset xlabel '%s'\nset ylabel '%s, %s is better'\n"
		"plot $line_%u using 1:2:3:4 with yerrorlines lw 2 pt 7 ps 0.6 "
		"lc rgb '#1f77b4' title '%s', "
		"$line_%u using 1:5:6:7 with yerrorlines lw 2 pt 5 ps 0.6 "
		"lc rgb '#ff7f0e' title '%s'\n",
		subject->name, bench_axis_name(panel->axis), subject->unit,
		subject->is_rate ? "more" : "less", index, subject->sides[BENCH_OURS], index,
		subject->sides[BENCH_FLOOR]);
}

static void write_script(struct bench_plot *plot, struct output_text *script)
{
	output_text_append(script, plot->blocks.bytes, plot->blocks.length);
	script_head(script, plot->panel_count);
	for (uint32_t i = 0; i < plot->panel_count; i++) {
		(plot->panels[i].point_count > 1 ? script_sweep : script_distribution)(
			script, &plot->panels[i], i);
	}
	output_text_string(script, "unset multiplot\n");
}

/* ---- the run ---- */

static int run_gnuplot(int script_fd, int picture_fd)
{
	static char name[] = "gnuplot";
	char *arguments[] = {name, NULL};
	posix_spawn_file_actions_t actions;
	int status = 0;
	pid_t child;
	int rc;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, script_fd, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, picture_fd, STDOUT_FILENO);
	rc = -posix_spawnp(&child, name, &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (rc != 0) {
		report_line("cannot start gnuplot: %s", report_reason(rc));
		return rc;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		report_line("gnuplot failed");
		return -EIO;
	}
	return 0;
}

static int make_script_file(const struct output_text *script)
{
	int fd = memfd_create("pinion-plot", MFD_CLOEXEC);
	size_t done = 0;

	while (fd >= 0 && done < script->length) {
		ssize_t count = write(fd, script->bytes + done, script->length - done);

		if (count < 0) {
			int error = -errno;

			close(fd);
			return error;
		}
		done += (size_t)count;
	}
	if (fd < 0 || lseek(fd, 0, SEEK_SET) != 0) {
		return -errno;
	}
	return fd;
}

/* A picture is for others to read, as any file the user makes is. */
static int put_in_place(struct bench_plot *plot)
{
	mode_t mask = umask(0);

	umask(mask);
	if (fchmod(plot->fd, 0666 & ~mask) != 0 || fsync(plot->fd) != 0 ||
		rename(plot->temporary_path, plot->path) != 0) {
		int error = -errno;

		report_path(plot->path, report_reason(error));
		return error;
	}
	plot->is_finished = true;
	return 0;
}

int bench_plot_finish(struct bench_plot *plot)
{
	struct output_text script = {0};
	int script_fd;
	int rc;

	if (plot == NULL || plot->panel_count == 0) {
		return 0;
	}
	write_script(plot, &script);
	script_fd = script.failed ? -ENOMEM : make_script_file(&script);
	output_text_free(&script);
	if (script_fd < 0) {
		report_line("cannot draw: %s", report_reason(script_fd));
		return script_fd;
	}
	rc = run_gnuplot(script_fd, plot->fd);
	close(script_fd);
	return rc == 0 ? put_in_place(plot) : rc;
}
