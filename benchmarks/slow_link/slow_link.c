// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An MPI with the message times of a slow link: calls the functions of MPICH, with which this library is linked, and then
// waits. A rank sleeps until a message would have arrived: SLOW_LINK_SECONDS, plus the time of its bytes at
// SLOW_LINK_BANDWIDTH bytes a second, after its start; collectives are rings. For nonblocking messages, it sleeps in
// MPI_Wait.

#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

enum { kMostMessages = 1024 };

static struct { int *request; double until; } underway[kMostMessages];

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

static void sleep_until(double until) {
  double left = until - now();
  if (left <= 0)
    return;
  struct timespec time = {(time_t)left, (long)((left - (time_t)left) * 1e9)};
  nanosleep(&time, NULL);
}

static double number(const char *name) {
  const char *text = getenv(name);
  return text ? atof(text) : 0;
}

int PMPI_Type_size(int datatype, int *size);
int PMPI_Comm_size(int communicator, int *size);

static double seconds(int messages, int count, int datatype) {
  int size;
  PMPI_Type_size(datatype, &size);
  double bandwidth = number("SLOW_LINK_BANDWIDTH");
  double transfer = bandwidth > 0 ? (double)count * size / bandwidth : 0;
  return messages * (number("SLOW_LINK_SECONDS") + transfer);
}

static int others(int communicator) {
  int size;
  PMPI_Comm_size(communicator, &size);
  return size - 1;
}

static void start(int *request, double until) {
  for (int i = 0; i < kMostMessages; ++i)
    if (!underway[i].request) {
      underway[i].request = request;
      underway[i].until = until;
      return;
    }
  abort();
}

int PMPI_Allgather(const void *, int, int, void *, int, int, int);
int MPI_Allgather(const void *sent, int sent_count, int sent_type, void *received, int count, int type, int group) {
  double until = now() + seconds(others(group), count, type);
  int error = PMPI_Allgather(sent, sent_count, sent_type, received, count, type, group);
  sleep_until(until);
  return error;
}

int PMPI_Reduce_scatter_block(const void *, void *, int, int, int, int);
int MPI_Reduce_scatter_block(const void *sent, void *received, int count, int type, int reduction, int group) {
  double until = now() + seconds(others(group), count, type);
  int error = PMPI_Reduce_scatter_block(sent, received, count, type, reduction, group);
  sleep_until(until);
  return error;
}

int PMPI_Iallgather(const void *, int, int, void *, int, int, int, int *);
int MPI_Iallgather(const void *sent, int sent_count, int sent_type, void *received, int count, int type, int group,
                   int *request) {
  start(request, now() + seconds(others(group), count, type));
  return PMPI_Iallgather(sent, sent_count, sent_type, received, count, type, group, request);
}

int PMPI_Ireduce_scatter_block(const void *, void *, int, int, int, int, int *);
int MPI_Ireduce_scatter_block(const void *sent, void *received, int count, int type, int reduction, int group,
                              int *request) {
  start(request, now() + seconds(others(group), count, type));
  return PMPI_Ireduce_scatter_block(sent, received, count, type, reduction, group, request);
}

int PMPI_Sendrecv(const void *, int, int, int, int, void *, int, int, int, int, int, void *);
int MPI_Sendrecv(const void *sent, int sent_count, int sent_type, int target, int sent_tag, void *received, int count,
                 int type, int source, int tag, int group, void *status) {
  double until = now() + seconds(1, count, type);
  int error = PMPI_Sendrecv(sent, sent_count, sent_type, target, sent_tag, received, count, type, source, tag, group,
                            status);
  sleep_until(until);
  return error;
}

int PMPI_Irecv(void *, int, int, int, int, int, int *);
int MPI_Irecv(void *received, int count, int type, int source, int tag, int group, int *request) {
  start(request, now() + seconds(1, count, type));
  return PMPI_Irecv(received, count, type, source, tag, group, request);
}

int PMPI_Wait(int *, void *);
int MPI_Wait(int *request, void *status) {
  int error = PMPI_Wait(request, status);
  for (int i = 0; i < kMostMessages; ++i)
    if (underway[i].request == request) {
      sleep_until(underway[i].until);
      underway[i].request = NULL;
      break;
    }
  return error;
}
