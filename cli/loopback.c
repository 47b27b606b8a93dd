/* SPDX-License-Identifier: MIT */
/* See loopback.h. As much of HTTP/1.1 as one file needs. */
#include "loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
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
#define PATIENCE_S 10 /* for a request to be complete; browsers open connections ahead of need */

struct client {
    int fd; /* -1: free */
    time_t since;
    size_t size;
    char request[REQUEST_BYTES + 1];
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
        listen(server->listener, CLIENTS) ||
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

static bool send_all(int fd, const char *text, size_t size)
{
    while (size) {
        ssize_t sent = send(fd, text, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        text += sent;
        size -= (size_t)sent;
    }
    return true;
}

static void refuse(int fd, const char *status)
{
    char reply[256];
    int size = snprintf(reply, sizeof reply,
                        "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                        "Connection: close\r\n\r\n%s\n", status, strlen(status) + 1, status);
    send_all(fd, reply, (size_t)size);
}

static void send_file(int fd, int file, bool with_body)
{
    struct stat about;
    char head[512];
    if (fstat(file, &about))
        return refuse(fd, "500 Internal Server Error");
    int size = snprintf(head, sizeof head,
                        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
                        "Content-Length: %lld\r\nCache-Control: no-store\r\n"
                        "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"
                        "Cross-Origin-Resource-Policy: same-origin\r\n"
                        "Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
                        (long long)about.st_size);
    if (!send_all(fd, head, (size_t)size) || !with_body)
        return;
    off_t at = 0;
    while (at < about.st_size && sendfile(fd, file, &at, (size_t)(about.st_size - at)) > 0)
        ;
}

static void answer(const struct lapse_loopback *server, struct client *client, int file)
{
    /* From here on the connection waits for the reader, but not for ever. */
    struct timeval patience = { .tv_sec = PATIENCE_S };
    setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    fcntl(client->fd, F_SETFL, fcntl(client->fd, F_GETFL) & ~O_NONBLOCK);
    char *request = client->request, *path = strchr(request, ' ');
    bool get = !strncmp(request, "GET ", 4), head = !strncmp(request, "HEAD ", 5);
    size_t length = path ? strcspn(path + 1, " ?\r\n") : 0;
    if (!host_is_ours(server, request))
        refuse(client->fd, "403 Forbidden");
    else if (!get && !head)
        refuse(client->fd, "405 Method Not Allowed");
    else if (length != strlen(server->path) || strncmp(path + 1, server->path, length))
        refuse(client->fd, "404 Not Found");
    else
        send_file(client->fd, file, get);
}

static void drop(struct client *client)
{
    shutdown(client->fd, SHUT_RDWR);
    close(client->fd);
    client->fd = -1;
}

/* Read what is there; answer once the request's head is complete. */
static void hear(const struct lapse_loopback *server, struct client *client, int file)
{
    ssize_t got = recv(client->fd, client->request + client->size, REQUEST_BYTES - client->size, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0)
        return drop(client);
    client->size += (size_t)got;
    client->request[client->size] = 0;
    if (strstr(client->request, "\r\n\r\n")) {
        answer(server, client, file);
        drop(client);
    } else if (client->size == REQUEST_BYTES || memchr(client->request, 0, client->size)) {
        refuse(client->fd, "400 Bad Request");
        drop(client);
    }
}

static void admit(const struct lapse_loopback *server, struct client *clients, time_t now)
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
    place->fd = fd;
    place->since = now;
    place->size = 0;
}

int lapse_loopback_run(struct lapse_loopback *server, int file, int stop)
{
    static struct client clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        clients[i].fd = -1;
    for (;;) {
        struct pollfd polled[CLIENTS + 2];
        for (int i = 0; i < CLIENTS; i++)
            polled[i] = (struct pollfd){ .fd = clients[i].fd, .events = POLLIN };
        polled[CLIENTS] = (struct pollfd){ .fd = server->listener, .events = POLLIN };
        polled[CLIENTS + 1] = (struct pollfd){ .fd = stop, .events = POLLIN };
        if (poll(polled, CLIENTS + 2, 1000) < 0 && errno != EINTR)
            return -errno;
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (polled[CLIENTS + 1].revents)
            break;
        for (int i = 0; i < CLIENTS; i++) {
            if (clients[i].fd < 0)
                continue;
            if (polled[i].revents)
                hear(server, &clients[i], file);
            else if (now.tv_sec - clients[i].since > PATIENCE_S)
                drop(&clients[i]);
        }
        if (polled[CLIENTS].revents)
            admit(server, clients, now.tv_sec);
    }
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i].fd >= 0)
            drop(&clients[i]);
    return 0;
}
