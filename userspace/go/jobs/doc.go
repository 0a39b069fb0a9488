// SPDX-License-Identifier: LGPL-2.1-or-later

// Package jobs puts jobs into queues of twjobd(8), and works on them when they are due: work
// that is to be done later, and that no crash may lose.
//
//	mails := jobs.NewQueue("mails", jobs.Server)
//	_, err := mails.Add(ctx, body, jobs.Options{Due: jobs.In(48 * time.Hour), Key: "rate-4711"})
//	...
//	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
//	defer stop()
//	worker := jobs.Worker{Queue: "mails", Handler: send, Concurrency: 10}
//	err = worker.Run(ctx)
//
// A server is the path of twjobd's socket, or a URL: redis://:PASSWORD@HOST:PORT, or
// unix://:PASSWORD@/PATH. twjob-protocol(7) tells more of each option.
//
// A call that twjobd refuses returns an *Error, which says what to do. All calls may be used
// by any number of goroutines at once.
package jobs
