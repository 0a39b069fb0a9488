// SPDX-License-Identifier: GPL-2.0-only
/*
 * The secret that receivers know, too, and signatures by it as Standard Webhooks has them
 * (https://www.standardwebhooks.com). This file knows neither jobs nor HTTP.
 */
#include <sodium.h>

#include "http.h"

#define PREFIX		"whsec_"
#define LEAST_SECRET	24
#define MOST_SECRET	64

static unsigned char secret[MOST_SECRET];
static size_t secret_length;

static __noreturn void bad_secret(const char *path, const char *why)
{
	die(STATUS_USAGE, "--secret-file '%s': %s; a new one: echo " PREFIX
	    "$(head -c 32 /dev/urandom | base64)", path, why);
}

/* Reads the secret from the file's first line, with or without the prefix. */
void secret_read(const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL, *text, *end;
	size_t size = 0;

	if (!file)
		die(STATUS_USAGE, "--secret-file '%s': %s", path, strerror(errno));
	if (getline(&line, &size, file) < 0)
		bad_secret(path, "there is no line in it");
	fclose(file);
	line[strcspn(line, "\r\n")] = '\0';
	text = line + (strncmp(line, PREFIX, strlen(PREFIX)) ? 0 : strlen(PREFIX));
	if (sodium_base642bin(secret, sizeof(secret), text, strlen(text), NULL, &secret_length,
			      (const char **)&end, sodium_base64_VARIANT_ORIGINAL) || *end)
		bad_secret(path, "its first line is not " PREFIX " and at most 64 bytes in base64");
	if (secret_length < LEAST_SECRET)
		bad_secret(path, "a secret has 24 bytes or more, in base64");
	sodium_memzero(line, size);
	free(line);
}

/* Returns "v1," and the signature, which the caller frees; NULL if there is no secret. */
char *secret_sign(const char *id, const char *timestamp, const void *body, size_t length)
{
	unsigned char code[crypto_auth_hmacsha256_BYTES];
	char text[sodium_base64_ENCODED_LEN(sizeof(code), sodium_base64_VARIANT_ORIGINAL)];
	crypto_auth_hmacsha256_state state;
	char *signature;

	if (!secret_length)
		return NULL;
	crypto_auth_hmacsha256_init(&state, secret, secret_length);
	crypto_auth_hmacsha256_update(&state, (const void *)id, strlen(id));
	crypto_auth_hmacsha256_update(&state, (const void *)".", 1);
	crypto_auth_hmacsha256_update(&state, (const void *)timestamp, strlen(timestamp));
	crypto_auth_hmacsha256_update(&state, (const void *)".", 1);
	crypto_auth_hmacsha256_update(&state, body, length);
	crypto_auth_hmacsha256_final(&state, code);
	sodium_bin2base64(text, sizeof(text), code, sizeof(code),
			  sodium_base64_VARIANT_ORIGINAL);
	if (asprintf(&signature, "v1,%s", text) < 0)
		die(STATUS_FAILED, "no memory for a signature");
	return signature;
}
