/* SPDX-License-Identifier: MIT */
/* The runtime's own words, made without the C library's tables. */
#include "message.h"

#include <criterion/criterion.h>
#include <errno.h>

Test(message, an_error_without_words_has_its_number)
{
    cr_assert_str_eq(lapse_error_text(-ENOSPC), "no space left");
    cr_assert_str_eq(lapse_error_text(ENOSPC), "no space left");
    cr_assert_str_eq(lapse_error_text(-EBADF), "error 9");
    cr_assert_str_eq(lapse_error_text(-ESTALE), "error 116");
}
