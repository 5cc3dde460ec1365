//go:build cgo && linux

package vk

/*
#include <stdint.h>

typedef uint64_t u64;
typedef uint32_t u32;
typedef int32_t (*function)(u64, u64, u64, u64, u64);

enum {
	isSubmit = 4, isCalibration = 1000184000, isTimelineSubmit = 1000207003, isWait = 1000207004, isSignal = 1000207005,
	allCommands = 0x10000,
	mostWaits = 4, mostBuffers = 32,
};

typedef struct {
	u32 waits, buffers, signals;
	u64 semaphore[mostWaits], value[mostWaits], buffer[mostBuffers];
	u64 done, reaches;
} submission;

static int32_t sluice_submit(u64 f, u64 queue, submission *s) {
	struct {
		u32 kind; u64 next; u32 waits; u64 *values; u32 signals; u64 *reaches;
	} line = {isTimelineSubmit, 0, s->waits, s->value, s->signals, &s->reaches};
	u32 stages[mostWaits] = {allCommands, allCommands, allCommands, allCommands};
	struct {
		u32 kind; void *next; u32 waits; u64 *semaphores; u32 *stages; u32 buffers; u64 *buffer; u32 signals; u64 *done;
	} info = {isSubmit, &line, s->waits, s->semaphore, stages, s->buffers, s->buffer, s->signals, &s->done};
	_Static_assert(sizeof line == 48, "VkTimelineSemaphoreSubmitInfo");
	_Static_assert(sizeof info == 72, "VkSubmitInfo");
	return ((function)f)(queue, 1, (u64)&info, 0, 0);
}

static int32_t sluice_wait(u64 f, u64 device, u64 semaphore, u64 value, u64 limit) {
	struct {
		u32 kind; u64 next; u32 flags, count; u64 *semaphores, *values;
	} info = {isWait, 0, 0, 1, &semaphore, &value};
	_Static_assert(sizeof info == 40, "VkSemaphoreWaitInfo");
	return ((function)f)(device, (u64)&info, limit, 0, 0);
}

static int32_t sluice_raise(u64 f, u64 device, u64 semaphore, u64 value) {
	struct { u32 kind; u64 next, semaphore, value; } info = {isSignal, 0, semaphore, value};
	_Static_assert(sizeof info == 32, "VkSemaphoreSignalInfo");
	return ((function)f)(device, (u64)&info, 0, 0, 0);
}

static int32_t sluice_value(u64 f, u64 device, u64 semaphore, u64 *value) {
	return ((function)f)(device, semaphore, (u64)value, 0, 0);
}

typedef struct { u64 stamp[2], apart; } stamps;

static int32_t sluice_calibrate(u64 f, u64 device, u32 here, u32 there, stamps *s) {
	struct { u32 kind; u64 next; u32 domain; } infos[2] = {{isCalibration, 0, here}, {isCalibration, 0, there}};
	_Static_assert(sizeof infos == 48, "VkCalibratedTimestampInfoEXT");
	return ((function)f)(device, 2, (u64)infos, (u64)s->stamp, (u64)&s->apart);
}

#cgo noescape sluice_submit
#cgo nocallback sluice_submit
#cgo nocallback sluice_wait
#cgo nocallback sluice_raise
#cgo noescape sluice_value
#cgo nocallback sluice_value
#cgo noescape sluice_calibrate
#cgo nocallback sluice_calibrate
*/
import "C"

// What every step calls allocates nothing: structures are on C's stack, and values for them on Go's.

// mostRecordings is how many recordings one call of vkQueueSubmit takes.
const mostRecordings = C.mostBuffers

// submit calls vkQueueSubmit for some recordings; done may be nil.
func (d *Device) submit(queue uint64, all []*Recording, waits []Point, done *Point) Result {
	var s C.submission
	for i, w := range waits {
		s.semaphore[i], s.value[i] = C.u64(number(w.Timeline.semaphore)), C.u64(w.Value)
	}
	for i, r := range all {
		s.buffer[i] = C.u64(r.buffer)
	}
	s.waits, s.buffers = C.u32(len(waits)), C.u32(len(all))
	if done != nil {
		s.signals, s.done, s.reaches = 1, C.u64(number(done.Timeline.semaphore)), C.u64(done.Value)
	}
	return Result(C.sluice_submit(C.u64(d.f.submit), C.u64(queue), &s))
}

func (t *Timeline) wait(value, nanoseconds uint64) Result {
	return Result(C.sluice_wait(C.u64(t.d.f.wait), C.u64(number(t.d.handle)), C.u64(number(t.semaphore)), C.u64(value),
		C.u64(nanoseconds)))
}

func (t *Timeline) raise(value uint64) Result {
	return Result(C.sluice_raise(C.u64(t.d.f.signal), C.u64(number(t.d.handle)), C.u64(number(t.semaphore)), C.u64(value)))
}

func (t *Timeline) value() (uint64, Result) {
	var v C.u64
	r := C.sluice_value(C.u64(t.d.f.value), C.u64(number(t.d.handle)), C.u64(number(t.semaphore)), &v)
	return uint64(v), Result(r)
}

// clocks reads both clocks, the device's in ticks and the host's in nanoseconds, and the most nanoseconds between the
// two readings.
func (d *Device) clocks() (ticks, host, apart uint64, r Result) {
	var s C.stamps
	r = Result(C.sluice_calibrate(C.u64(d.f.calibrate), C.u64(number(d.handle)), deviceClock, hostClock, &s))
	return uint64(s.stamp[0]), uint64(s.stamp[1]), uint64(s.apart), r
}
