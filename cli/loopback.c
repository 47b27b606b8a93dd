/* SPDX-License-Identifier: MIT */
/* See loopback.h. As much of HTTP/1.1 as one file needs. */
#include "loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS 16
#define REQUEST_BYTES 8192
#define PATIENCE_NS 10000000000 /* without a byte in either direction; browsers open connections ahead of need */

struct client {
    int fd; /* -1: free */
    int64_t since; /* last progress: CLOCK_MONOTONIC, so fine that no two are equal */
    size_t size;
    char request[REQUEST_BYTES + 1];
    bool answering; /* below holds; nothing more is read */
    char head[512]; /* with the body, unless that is the file */
    size_t head_size, head_sent;
    off_t file_sent, file_size;
};

int lapse_loopback_open(struct lapse_loopback *server)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    uint8_t secret[16];
    *server = (struct lapse_loopback){ .listener = -1 };
    if (getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret)
        return -EIO;
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (server->listener < 0)
        return -errno;
    if (bind(server->listener, (struct sockaddr *)&address, size) ||
        listen(server->listener, SOMAXCONN) ||
        getsockname(server->listener, (struct sockaddr *)&address, &size)) {
        int error = -errno;
        lapse_loopback_close(server);
        return error;
    }
    server->port = ntohs(address.sin_port);
    char *to = server->path;
    *to++ = '/';
    for (size_t i = 0; i < sizeof secret; i++)
        to += snprintf(to, 3, "%02x", secret[i]);
    snprintf(to, 2, "/");
    snprintf(server->address, sizeof server->address, "http://127.0.0.1:%u%s", server->port,
             server->path);
    return 0;
}

void lapse_loopback_close(struct lapse_loopback *server)
{
    if (server->listener >= 0)
        close(server->listener);
    server->listener = -1;
}

/* The value of a header into `to`; "" when there is none, or it is given twice or too long. */
static void header(const char *request, const char *name, char *to, size_t size)
{
    size_t length = strlen(name);
    unsigned found = 0;
    *to = 0;
    for (const char *line = strstr(request, "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, length) || line[length] != ':')
            continue;
        const char *value = line + length + 1 + strspn(line + length + 1, " \t");
        size_t end = strcspn(value, "\r\n");
        while (end && (value[end - 1] == ' ' || value[end - 1] == '\t'))
            end--;
        found++;
        if (found > 1 || end >= size) {
            *to = 0;
            return;
        }
        memcpy(to, value, end);
        to[end] = 0;
    }
}

static bool host_is_ours(const struct lapse_loopback *server, const char *request)
{
    char host[64], numeric[32], named[32];
    header(request, "Host", host, sizeof host);
    snprintf(numeric, sizeof numeric, "127.0.0.1:%u", server->port);
    snprintf(named, sizeof named, "localhost:%u", server->port);
    return !strcmp(host, numeric) || !strcasecmp(host, named);
}

static void refuse(struct client *client, const char *status)
{
    client->answering = true;
    client->head_size = (size_t)snprintf(
        client->head, sizeof client->head,
        "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
        "Connection: close\r\n\r\n%s\n", status, strlen(status) + 1, status);
}

static void offer(struct client *client, int file, bool with_body)
{
    struct stat about;
    if (fstat(file, &about)) {
        refuse(client, "500 Internal Server Error");
        return;
    }
    client->answering = true;
    client->file_size = with_body ? about.st_size : 0;
    client->head_size = (size_t)snprintf(
        client->head, sizeof client->head,
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
        "Content-Length: %lld\r\nCache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"
        "Cross-Origin-Resource-Policy: same-origin\r\n"
        "Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
        (long long)about.st_size);
}

static void answer(const struct lapse_loopback *server, struct client *client, int file)
{
    char *request = client->request, *path = strchr(request, ' ');
    bool get = !strncmp(request, "GET ", 4), head = !strncmp(request, "HEAD ", 5);
    size_t length = path ? strcspn(path + 1, " ?\r\n") : 0;
    if (!host_is_ours(server, request))
        refuse(client, "403 Forbidden");
    else if (!get && !head)
        refuse(client, "405 Method Not Allowed");
    else if (length != strlen(server->path) || strncmp(path + 1, server->path, length))
        refuse(client, "404 Not Found");
    else
        offer(client, file, get);
}

static void drop(struct client *client)
{
    shutdown(client->fd, SHUT_RDWR);
    close(client->fd);
    client->fd = -1;
}

/* Send what the connection takes now; it is dropped when all is sent, or nobody listens any more.
 * A peer that is gone makes sendfile raise SIGPIPE, which the caller of run() ignores. */
static void speak(struct client *client, int file, int64_t now)
{
    ssize_t sent = 1;
    while (sent > 0 && client->head_sent < client->head_size) {
        sent = send(client->fd, client->head + client->head_sent,
                    client->head_size - client->head_sent, MSG_NOSIGNAL);
        client->head_sent += sent > 0 ? (size_t)sent : 0;
    }
    while (sent > 0 && client->file_sent < client->file_size) {
        sent = sendfile(client->fd, file, &client->file_sent,
                        (size_t)(client->file_size - client->file_sent));
        client->since = sent > 0 ? now : client->since;
    }
    if (sent >= 0 || (errno != EAGAIN && errno != EINTR)) /* 0: the file became shorter */
        drop(client);
}

/* Read what is there; answer once the request's head is complete. */
static void hear(const struct lapse_loopback *server, struct client *client, int file, int64_t now)
{
    ssize_t got = recv(client->fd, client->request + client->size, REQUEST_BYTES - client->size, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        drop(client);
        return;
    }
    client->since = now;
    client->size += (size_t)got;
    client->request[client->size] = 0;
    if (strstr(client->request, "\r\n\r\n"))
        answer(server, client, file);
    else if (client->size == REQUEST_BYTES || memchr(client->request, 0, client->size))
        refuse(client, "400 Bad Request");
    if (client->answering)
        speak(client, file, now);
}

static void admit(const struct lapse_loopback *server, struct client *clients, int64_t now)
{
    int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    struct client *place = &clients[0];
    for (int i = 0; i < CLIENTS; i++) {
        if (clients[i].fd < 0) {
            place = &clients[i];
            break;
        }
        if (clients[i].since < place->since)
            place = &clients[i];
    }
    if (place->fd >= 0)
        drop(place); /* all taken: whoever has been silent longest goes */
    /* The request's buffer stays as it was: only what is read is looked at. */
    place->fd = fd;
    place->since = now;
    place->size = 0;
    place->answering = false;
    place->head_size = place->head_sent = 0;
    place->file_sent = place->file_size = 0;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int lapse_loopback_run(struct lapse_loopback *server, int file, int stop)
{
    static struct client clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        clients[i].fd = -1;
    for (;;) {
        struct pollfd polled[CLIENTS + 2];
        for (int i = 0; i < CLIENTS; i++)
            polled[i] = (struct pollfd){ .fd = clients[i].fd,
                                         .events = clients[i].answering ? POLLOUT : POLLIN };
        polled[CLIENTS] = (struct pollfd){ .fd = server->listener, .events = POLLIN };
        polled[CLIENTS + 1] = (struct pollfd){ .fd = stop, .events = POLLIN };
        if (poll(polled, CLIENTS + 2, 1000) < 0 && errno != EINTR)
            return -errno;
        int64_t now = now_ns();
        if (polled[CLIENTS + 1].revents)
            break;
        for (int i = 0; i < CLIENTS; i++) {
            if (clients[i].fd < 0)
                continue;
            if (polled[i].revents && clients[i].answering)
                speak(&clients[i], file, now);
            else if (polled[i].revents)
                hear(server, &clients[i], file, now);
            else if (now - clients[i].since > PATIENCE_NS)
                drop(&clients[i]);
        }
        if (polled[CLIENTS].revents)
            admit(server, clients, now);
    }
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].fd >= 0)
            drop(&clients[i]);
    return 0;
}
