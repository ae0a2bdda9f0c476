/* An engine that streams answers by a fixed schedule: an event each INTERVAL microseconds for each
 * stream, TOKENS tokens in each, EVENTS of them (at most 512). It answers /v1/chat/completions and
 * /generate. Every event of the former holds the moment at which it was sent (nanoseconds of
 * CLOCK_MONOTONIC, in `created`), so that a client can tell how late it stamps. GET /truth tells of
 * each answer since the last such question: [asked, first event, last event, tokens], in
 * nanoseconds. One thread; prints its port on standard output.
 *
 * stub_engine EVENTS INTERVAL TOKENS
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 2048, INPUT = 1 << 20, EVENTS = 512, ANSWERS = 4096 };
static const char WORDS[] = " four words of text";

struct answer { long long asked, first, last; long tokens; };

struct stream {
    int open, active, sent, native;
    long long due;
    struct answer answer;
    size_t length;
    char *input;
};

static struct stream streams[MOST];
static struct answer answers[ANSWERS];
static int answered;
static long events, interval_ns, tokens;

static long long now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static void end_stream(int fd) {
    free(streams[fd].input);
    memset(&streams[fd], 0, sizeof streams[fd]);
    close(fd);
}

static void put(int fd, const char *data, size_t length) {
    while (length) {
        ssize_t sent = send(fd, data, length, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (sent < 0) { end_stream(fd); return; }
        data += sent;
        length -= sent;
    }
}

static void put_plain(int fd, const char *body) {
    char text[512];
    int length = snprintf(text, sizeof text,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n",
        strlen(body));
    put(fd, text, length);
    put(fd, body, strlen(body));
}

static void put_truth(int fd) {
    static char body[ANSWERS * 96];
    int length = sprintf(body, "[");
    for (int at = 0; at < answered; at++)
        length += sprintf(body + length, "%s[%lld,%lld,%lld,%ld]", at ? "," : "",
            answers[at].asked, answers[at].first, answers[at].last, answers[at].tokens);
    sprintf(body + length, "]");
    answered = 0;
    put_plain(fd, body);
}

static int chunk(char *out, size_t room, const char *json) {
    return snprintf(out, room, "%zx\r\ndata: %s\n\n\r\n", strlen(json) + 8, json);
}

static void chat_event(char *json, size_t room, long count, int last) {
    snprintf(json, room,
        "{\"id\":\"17d55e7cbf004661861e0ced941fe896\",\"object\":\"chat.completion.chunk\","
        "\"created\":%lld,\"model\":\"stub\",\"choices\":[{\"index\":0,\"delta\":{"
        "\"reasoning_content\":null,\"content\":\"%s\"},\"logprobs\":null,"
        "\"finish_reason\":%s,\"matched_stop\":null}],\"usage\":{\"prompt_tokens\":57,"
        "\"completion_tokens\":%ld,\"total_tokens\":%ld}}",
        now(), WORDS, last ? "\"length\"" : "null", count, count + 57);
}

static void native_event(char *json, size_t room, long count, int sent, int last) {
    int length = snprintf(json, room, "{\"text\":\"");
    for (int at = 0; at < sent; at++) length += snprintf(json + length, room - length, "%s", WORDS);
    snprintf(json + length, room - length,
        "\",\"meta_info\":{\"id\":\"17d55e7cbf004661861e0ced941fe896\",\"finish_reason\":%s,"
        "\"prompt_tokens\":57,\"completion_tokens\":%ld,\"cached_tokens\":0}}",
        last ? "{\"type\":\"length\"}" : "null", count);
}

static void put_event(int fd) {
    struct stream *stream = &streams[fd];
    static char json[sizeof WORDS * EVENTS + 1024], text[sizeof json + 4096];
    int last = stream->sent + 1 >= events, length;
    long count = (stream->sent + 1) * tokens;
    if (stream->native) native_event(json, sizeof json, count, stream->sent + 1, last);
    else chat_event(json, sizeof json, count, last);
    length = chunk(text, sizeof text, json);
    if (last && !stream->native) {
        snprintf(json, sizeof json, "{\"choices\":[],\"created\":0,\"usage\":{\"prompt_tokens\":57,"
            "\"completion_tokens\":%ld,\"total_tokens\":%ld}}", count, count + 57);
        length += chunk(text + length, sizeof text - length, json);
    }
    if (last) {
        length += chunk(text + length, sizeof text - length, "[DONE]");
        length += snprintf(text + length, sizeof text - length, "0\r\n\r\n");
    }
    stream->answer.last = now();
    if (!stream->sent++) stream->answer.first = stream->answer.last;
    stream->answer.tokens = count;
    if (last && answered < ANSWERS) answers[answered++] = stream->answer;
    stream->due += interval_ns;
    stream->active = !last;
    put(fd, text, length);
}

static void answer(int fd, const char *request) {
    struct stream *stream = &streams[fd];
    if (!strncmp(request, "GET /truth", 10)) {
        put_truth(fd);
        return;
    }
    if (strncmp(request, "POST /v1/chat", 13) && strncmp(request, "POST /generate", 14)) {
        put_plain(fd, "{\"data\":[{\"id\":\"stub\"}]}");
        return;
    }
    long long asked = now();
    const char *head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                       "transfer-encoding: chunked\r\n\r\n";
    put(fd, head, strlen(head));
    stream->sent = 0;
    stream->native = request[6] == 'g';
    stream->answer.asked = asked;
    stream->active = stream->open;
    stream->due = now() + interval_ns + (long long)(fd * 7919LL * 1000) % interval_ns;
}

static void take(int fd) {
    struct stream *stream = &streams[fd];
    ssize_t got = recv(fd, stream->input + stream->length, INPUT - 1 - stream->length, 0);
    if (got <= 0) {
        if (!got || (errno != EAGAIN && errno != EINTR)) end_stream(fd);
        return;
    }
    stream->length += got;
    stream->input[stream->length] = 0;
    char *end = strstr(stream->input, "\r\n\r\n"), *field;
    if (!end) return;
    size_t body = 0, head = end + 4 - stream->input;
    if ((field = strcasestr(stream->input, "content-length:")) && field < end)
        body = strtoul(field + 15, NULL, 10);
    if (stream->length < head + body) return;
    stream->length = 0;
    answer(fd, stream->input);
}

static void add(int loop, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    events = atol(argv[1]), interval_ns = atol(argv[2]) * 1000, tokens = atol(argv[3]);
    if (events < 1 || events > EVENTS) return 2;
    signal(SIGPIPE, SIG_IGN);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0), loop = epoll_create1(0);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1024)) return 1;
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    add(loop, listener), add(loop, timer);
    for (;;) {
        struct epoll_event ready[256];
        long long next = 0;
        for (int fd = 0; fd < MOST; fd++)
            if (streams[fd].active && (!next || streams[fd].due < next)) next = streams[fd].due;
        struct itimerspec when = {.it_value = {next / 1000000000, next % 1000000000}};
        timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
        int count = epoll_wait(loop, ready, 256, -1);
        for (int at = 0; at < count; at++) {
            int fd = ready[at].data.fd;
            if (fd == timer) {
                long long ticks;
                (void)!read(timer, &ticks, sizeof ticks);
            } else if (fd == listener) {
                int peer = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
                if (peer < 0) continue;
                if (peer >= MOST) { close(peer); continue; }
                setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                streams[peer].open = 1;
                streams[peer].input = malloc(INPUT);
                add(loop, peer);
            } else {
                take(fd);
            }
        }
        long long present = now();
        for (int fd = 0; fd < MOST; fd++)
            if (streams[fd].active && streams[fd].due <= present) put_event(fd);
    }
}
