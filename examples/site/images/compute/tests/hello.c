#include <stdio.h>

int main(void) {
    puts("hello from a node");
    return 0;
}
