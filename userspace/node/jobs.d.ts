// SPDX-License-Identifier: LGPL-2.1-or-later
//
// timewheel/jobs: jobs of twjobd for Node. twjob-protocol(7) tells more of each option. All
// spans are in ms.

import { EventEmitter } from 'node:events';
import { Redis, RedisOptions } from 'ioredis';

/** A connection is made like this one: the path of twjobd's socket, or an object of ioredis. */
export type Server = string | RedisOptions | Redis;

/** When a job is due: after a delay, or at a point of time, in ms since 1970. */
export interface When {
	delay?: number;
	at?: number | Date;
}

export interface AddOptions extends When {
	/** There is one job of a key in a queue. Without a key the job gets one of its own. */
	key?: string;
	/** A job of this key that exists gets this body, time and options. */
	replace?: boolean;
	/** For so long after the job is done, no other of its key is put. */
	unique?: number;
	/** The queue's GROUPLIMIT and GROUPRATE hold for the jobs of a group. */
	group?: string;
	/** A worker has the job for so long. */
	lease?: number;
	/** After so many tries the job is buried; 0 stands for no limit. */
	tries?: number;
	/** The times after a failed try until the job comes again: the first and the greatest. */
	backoff?: number | [first: number, most: number];
}

export interface Added {
	id: number;
	/** NEW: the job has been put. All others tell of the job of this key that exists. */
	outcome: 'NEW' | 'EXISTS' | 'BURIED' | 'REPLACED' | 'DONE';
}

/** An error of twjobd, with what to do. Nothing was changed, unless the code is UNAVAILABLE. */
export class JobError extends Error {
	/** The first word of twjobd's error, as FULL; UNAVAILABLE also if there is no answer. */
	code: string;
}

/** A handler that throws this has its job buried, whatever tries are left. */
export class Bury extends Error {}

export class Queue {
	readonly name: string;
	constructor(name: string, server?: Server);
	/** Puts a job. A body that is neither a string nor bytes becomes JSON. */
	add(body: unknown, options?: AddOptions): Promise<Added>;
	/** Ends the job of a key. Returns false if there is none. */
	cancel(key: string): Promise<boolean>;
	/** Makes the job of a key due at another time. Returns false if there is none. */
	move(key: string, when: When): Promise<boolean>;
	close(): void;
}

export class Job {
	readonly queue: string;
	readonly id: number;
	readonly receipt: string;
	/** The number of the try, from 1 on. */
	readonly attempt: number;
	readonly due: Date;
	readonly key: string | null;
	readonly body: Buffer;
	/** Aborted when the lease is over all the same, so that another worker may have the job. */
	readonly signal: AbortSignal;
	json(): unknown;
}

export interface WorkerOptions {
	/** Jobs that the handler works on at a time, 1 to 1000; 1 unless it is given. */
	concurrency?: number;
	/** Extensions are for so long, in place of the lease of the job; none makes it shorter. */
	lease?: number;
	server?: Server;
}

/**
 * Takes jobs that are due, and has the handler work on them. A job is done when the handler's
 * promise is fulfilled. If it is rejected, the job comes again as its BACKOFF tells, with the
 * error's message as the reason. Leases are extended from a thread of their own.
 */
export class Worker extends EventEmitter {
	constructor(queue: string, handler: (job: Job) => unknown, options?: WorkerOptions);
	on(event: 'failed', listener: (job: Job, error: unknown) => void): this;
	/**
	 * What twjobd refuses, or UNAVAILABLE if it cannot be reached; the worker goes on. Without a
	 * listener it is a warning.
	 */
	on(event: 'error', listener: (error: JobError) => void): this;
	/** Takes no more jobs, and waits for the jobs that the handler has. */
	close(): Promise<void>;
}
