/* SPDX-License-Identifier: Apache-2.0 */
/* One line of JSON for each request. The token's id stands in it, never the token, and of the
 * target the path only: what people put into queries is theirs. */
#include <inttypes.h>
#include <time.h>

#include "base/fd.h"
#include "gateway/front_internal.h"

void request_log(const struct front *f, const struct asker *who, const char *method,
                 struct http_slice path, unsigned status, uint64_t usec)
{
    autobuf b = {.max = 64u << 10};
    struct timespec now;

    if (!f->o.logs)
        return;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    buf_printf(&b, "{\"time\":%lld.%03ld", (long long)now.tv_sec, now.tv_nsec / 1000000);
    buf_json_str(&b, "level", "info");
    buf_json_str(&b, "message", "request");
    buf_json_str(&b, "method", method);
    buf_puts(&b, ",\"path\":");
    buf_json_string(&b, path.at, path.len);
    buf_json_num(&b, "status", status);
    buf_json_num(&b, "usec", (long long)usec);
    buf_json_str(&b, "request", who->request);
    buf_json_str(&b, "peer", who->peer);
    if (who->who.kind == CREDENTIAL_TOKEN)
        buf_json_str(&b, "token", who->who.id);
    else if (who->who.kind == CREDENTIAL_COOKIE)
        buf_json_str(&b, "token", "cookie");
    buf_puts(&b, "}\n");
    if (!b.failed)
        (void)fd_write_full(STDERR_FILENO, b.data, b.len);
}
