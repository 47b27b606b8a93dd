/* SPDX-License-Identifier: MIT */
/* Descriptors: the numbers that a program gets, sockets and passing them on, numbers that are closed
 * and reused all the time under a profiler that writes to a file of its own. */
#include "host.h"

#include <fcntl.h>
#include <sys/socket.h>

static void send_fd(int through, int fd)
{
    char byte = 'f', room[CMSG_SPACE(sizeof fd)] = { 0 };
    struct iovec part = { &byte, 1 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room,
                              .msg_controllen = sizeof room };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    HOST_CHECK(sendmsg(through, &message, 0) == 1, "sendmsg");
}

static int receive_fd(int through)
{
    char byte, room[CMSG_SPACE(sizeof(int))];
    int fd = -1;
    struct iovec part = { &byte, 1 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room,
                              .msg_controllen = sizeof room };
    HOST_CHECK(recvmsg(through, &message, MSG_CMSG_CLOEXEC) == 1, "recvmsg");
    if (CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

int main(void)
{
    int pair[2], ends[2];
    char text[8];
    HOST_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
    for (int i = 0; i < 300; i++) {
        host_burn_us(1000);
        HOST_CHECK(pipe(ends) == 0, "pipe");
        if (i % 100 == 0)
            printf("numbers %d %d %d %d\n", pair[0], pair[1], ends[0], ends[1]);
        send_fd(pair[0], ends[1]);
        close(ends[1]);
        int got = receive_fd(pair[1]);
        HOST_CHECK(got == ends[1], "received as %d, wanted %d", got, ends[1]);
        HOST_CHECK(write(got, "12345", 5) == 5 && read(ends[0], text, 8) == 5, "through the pipe");
        HOST_CHECK(dup2(got, 9) == 9 && close(got) == 0, "dup2");
        HOST_CHECK(write(9, "123", 3) == 3 && close(9) == 0, "copy");
        HOST_CHECK(read(ends[0], text, 8) == 3 && read(ends[0], text, 8) == 0,
                   "something else came through the pipe");
        close(ends[0]);
    }
    /* Numbers high up, where a library might keep its own, are the program's all the same. */
    for (int high = 990; high < 1024; high++) {
        host_burn_us(500);
        HOST_CHECK(dup2(pair[0], high) == high, "dup2 to %d: %d", high, errno);
    }
    host_burn_us(100000);
    for (int high = 990; high < 1024; high++)
        HOST_CHECK(close(high) == 0, "close %d: %d", high, errno);
    HOST_CHECK(send(pair[0], "last", 4, 0) == 4 && recv(pair[1], text, 8, MSG_DONTWAIT) == 4 &&
                   memcmp(text, "last", 4) == 0,
               "socket has other bytes");
    fflush(stdout);
    return host_end();
}
