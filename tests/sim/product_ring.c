/* SPDX-License-Identifier: MIT */
/*
 * The real io/ring.c, io/ring_setup.c, io/sync_wait.c, io/nvme_command.c,
 * io/request.c, io/operation_table.c, io/socket.c and io/transfer.c, whose few
 * system calls outside the host go to the device.
 */
#include "runtime/host/block_device.h"
#include "runtime/io/in_flight.h"
#include "runtime/io/request.h"
#include "runtime/io/ring.h"
#include "tests/sim/defect.h"
#include "tests/sim/device.h"
#include "tests/sim/disk.h"
#include "tests/sim/world.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define eventfd(count, flags) device_eventfd()
#define write(fd, bytes, length) device_eventfd_write(fd, bytes, length)
#define close(fd) device_eventfd_close(fd)

#define pin_sync_waits_drop(ring, user_data) \
	(!defect_is(DEFECT_POLL_KEPT) && pin_sync_waits_drop(ring, user_data))
#include "runtime/io/ring.c"
#undef pin_sync_waits_drop
#include "runtime/io/ring_setup.c"
#include "runtime/io/sync_wait.c"

#undef eventfd
#undef write
#undef close

/* Where the file ends is the device's to say; a defect has it end at once. */
#define fstat(fd, status) \
	(*(status) = (struct stat){.st_size = (off_t)(defect_is(DEFECT_SHORT_READ_TAKEN) \
						   ? 1 \
						   : DISK_FILE_BYTES)}, \
		0)

/* What the simulated kernel writes is seen by sanitizers, and is no touch. */
#define pin_in_flight_begin(request) ((void)(request))
#define pin_in_flight_end(request) ((void)(request))

/* By a call: for as long as the device takes. */
static int read_by_call(int fd, const struct nvme_uring_cmd *command)
{
	WORLD_CHECK(fd == DISK_NAMESPACE_FD);
	world_busy(disk_latency_ns());
	return pin_nvme_error((uint32_t)disk_execute_command(command));
}

#define pin_nvme_read(fd, command) read_by_call(fd, command)

#include "runtime/io/nvme_command.c"
#include "runtime/io/operation_table.c"
#include "runtime/io/request.c"

/* All sockets are streams. */
#define getsockopt(fd, level, name, value, bytes) \
	(*(value) = SOCK_STREAM, (void)(fd), (void)(bytes), 0)

#include "runtime/io/socket.c"
#include "runtime/io/transfer.c"
