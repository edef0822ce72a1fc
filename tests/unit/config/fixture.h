/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A home of its own for every test: no test reads the real one. */
#include "config/load.h"
#include "tests/test.h"

#define MAIN    ".openclaw/openclaw.json"
#define PROFILE ".openclaw/sandbox-profile.toml"
#define YAML    "data/clawden.yaml"
#define DOTENV  ".openclaw/.env"
#define SECRETS "secrets.env"

#define CLAIM_AT_HOME(text, fn)                                      \
    {                                                                \
        .name = (text), .test_func = (fn), .setup_func = home_setup, \
        .teardown_func = home_teardown                               \
    }

static inline int home_setup(void **state)
{
    struct temp *t;

    if (temp_setup(state) < 0)
        return -1;
    t = *state;
    (void)clearenv();
    (void)setenv("HOME", t->path, 1);
    (void)setenv("CLAWDEN_DATA_DIR", temp_path(t, "data"), 1);
    (void)setenv("CLAWDEN_SECRETS_ENV", temp_path(t, SECRETS), 1);
    (void)setenv("TZ", "UTC", 1);
    return chdir(t->path) < 0 || mkdirat(t->fd, ".openclaw", 0700) < 0 ||
                   mkdirat(t->fd, "data", 0700) < 0
               ? -1
               : 0;
}

static inline int home_teardown(void **state)
{
    (void)!chdir("/");
    return temp_teardown(state);
}

/* Makes a file; NULL removes it. */
static inline void put_file(const struct temp *t, const char *name, const char *text)
{
    if (text)
        temp_write(t, name, text, strlen(text));
    else
        (void)unlinkat(t->fd, name, 0);
}

static inline struct config *load_with(const struct config_inputs *in)
{
    struct config *c = NULL;
    struct error err = {0};

    CHECK_OK(config_load(in, &c, &err), err);
    assert_non_null(c);
    return c;
}

static inline struct config *load(void)
{
    return load_with(&(struct config_inputs){0});
}

/* Fails, and says so. */
static inline void refuse_with(const struct config_inputs *in, enum error_code code,
                               const char *part, const char *row)
{
    struct config *c = NULL;
    struct error err = {0};
    size_t fds = open_fds();
    int r = config_load(in, &c, &err);

    CHECK(r < 0 && !c, "%s: was loaded", row);
    CHECK(err.code == code && r == -(int)code, "%s: %s: %s", row, error_code_name(err.code),
          err.msg);
    CHECK(strstr(err.msg, part), "%s: '%s' does not say '%s'", row, err.msg, part);
    CHECK(!strchr(err.msg, '\n'), "%s: more than one line", row);
    CHECK(open_fds() == fds, "%s: left a descriptor open", row);
}

static inline void refuse(enum error_code code, const char *part, const char *row)
{
    refuse_with(&(struct config_inputs){0}, code, part, row);
}

/* What holds for an agent, as JSON. */
static inline void check_value(const struct config *c, const char *agent, enum setting_id id,
                               const char *want, const char *row)
{
    struct settings s;
    struct error err;
    char *got;

    CHECK_OK(config_for_agent(c, agent, &s, &err), err);
    got = s.value[id] ? json_dumps(s.value[id], JSON_COMPACT | JSON_ENCODE_ANY) : strdup("unset");
    CHECK_STR(got, want, row);
    free(got);
    settings_done(&s);
}

static inline void check_origin(const struct config *c, const char *agent, enum setting_id id,
                                const char *want, const char *row)
{
    struct settings s;
    struct error err;
    char text[1024];

    CHECK_OK(config_for_agent(c, agent, &s, &err), err);
    (void)origin_describe(&s.from[id], text, sizeof(text));
    CHECK(strstr(text, want), "%s: '%s' does not say '%s'", row, text, want);
    settings_done(&s);
}

static inline bool warns_of(const struct config *c, const char *part)
{
    for (size_t i = 0; config_warning(c, i); i++)
        if (strstr(config_warning(c, i), part))
            return true;
    return false;
}
