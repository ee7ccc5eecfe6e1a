/* SPDX-License-Identifier: MIT */
/*
 * A reader: one open file, read as windows, several at a time.
 *
 * It works with tracks; a track is one read at a time. In parallel each track
 * is a task of its own that any worker may take, and hands its window over as
 * soon as it is read. In order all tracks stay on the worker that started the
 * reader: reads run ahead, windows are handed over by turns. Either way a track
 * uses buffers of the worker it runs on and gives them back there.
 *
 * How many tracks work is up to the device: one that finds others lined up for
 * it (worker/device_queue.h) on its worker rests, and one whose read went to it
 * at once calls another. So about as many buffers are in use as the device is
 * given to do, always the same, and no more than that pass through the caches.
 * Where reads are over when they are submitted one for each worker does.
 *
 * Nothing waits for a buffer while holding one that somebody in front of it
 * needs: in order, the earliest window of a file gets its buffer first.
 *
 * Who gets the windows, and what happens at the end, is the owner's business:
 * `deliver` and `done`. The reader allocates nothing; the owner embeds it and
 * lends it the tracks.
 *
 * Invariants: (1) `done` is called exactly once, after the last `deliver`, and
 * touches nothing of the reader afterwards. (2) after an error, a cancellation
 * or PIN_READER_ENOUGH no window is handed over; with `reports_gaps` an
 * unreadable page is not such an error, but a gap of its window.
 *
 * [READER-1] each track counts itself out of `tracks_left` (in the lock) when
 * it ends; the one that reaches zero sees everything the others did and calls
 * `done`. Without it the file could be closed while a window is handed over.
 * The last one that works never rests, so zero means that no window is left.
 */
#ifndef PIN_SCAN_FILE_READER_H
#define PIN_SCAN_FILE_READER_H

#include "runtime/scan/file_reader_track.h"

/*
 * Begins on the calling worker with the inputs and the plan set; may be done
 * before it returns.
 */
void pin_reader_start(struct pin_reader *reader);

/*
 * 0, also after PIN_READER_ENOUGH, or the first error; in `done`. -ECANCELED:
 * cancelled before the end.
 */
int pin_reader_error(const struct pin_reader *reader);

/*
 * In `done`, with `reports_gaps`: 0, or the error of the lowest range that
 * could not be read.
 */
int pin_reader_gap_error(const struct pin_reader *reader);

/*
 * In `done`: the file is not what it was when it was opened, in size or in that
 * bytes which should have been there were not.
 */
bool pin_reader_file_changed(const struct pin_reader *reader);

#endif
