/* The demonstration board on ARM's MPS2 AN385 (Cortex-M3): vector table, start, UART, loop. Nothing of a vendor's. */
#include "ea_server.h"
#include "thermostat.h"

/* CMSDK APB UART 0: its state has bit 0 while the transmit buffer is full, bit 1 while a received byte waits. */
#define UART_DATA (*(volatile uint32_t *)0x40004000)
#define UART_STATE (*(volatile uint32_t *)0x40004004)
#define UART_CONTROL (*(volatile uint32_t *)0x40004008)
#define UART_INTERRUPT (*(volatile uint32_t *)0x4000400C)
#define UART_DIVIDER (*(volatile uint32_t *)0x40004010)
#define TRANSMIT_FULL 1u
#define RECEIVED 2u
#define TRANSMIT_RECEIVE_AND_WAKE 0xBu /* transmitter, receiver, an interrupt for every byte received */

/* Interrupt 0 is what UART 0 has received. It stays masked: it only ends the sleep. */
#define INTERRUPT_ENABLE (*(volatile uint32_t *)0xE000E100)
#define INTERRUPT_CLEAR (*(volatile uint32_t *)0xE000E280)
#define UART_RECEIVE 1u

#define CLOCK_HZ 25000000u
#define BAUD 115200u

/* Application interrupt and reset control; the upper half is the key without which a write is ignored. */
#define RESET_CONTROL (*(volatile uint32_t *)0xE000ED0C)
#define RESET_REQUEST 0x05FA0004u

extern uint32_t ea_data_from[], ea_data_to[], ea_data_end[], ea_bss[], ea_bss_end[], ea_stack_top[];

static ea_server server;

static void put(void *context, const uint8_t *bytes, size_t count)
{
    (void)context;
    while (count--) {
        while (UART_STATE & TRANSMIT_FULL) {
        }
        UART_DATA = *bytes++;
    }
}

static void restart(void)
{
    while (UART_STATE & TRANSMIT_FULL) {
    }
    RESET_CONTROL = RESET_REQUEST;
    for (;;) {
    }
}

/* Sleep until a byte is there. A busy wait would cost power, and time in an emulator. */
static uint8_t next_byte(void)
{
    while (!(UART_STATE & RECEIVED))
        __asm__ volatile("wfi");
    UART_INTERRUPT = RECEIVED;
    INTERRUPT_CLEAR = UART_RECEIVE;
    return (uint8_t)UART_DATA; /* Only now can the next byte come, and raise the interrupt again. */
}

static void serve(void)
{
    __asm__ volatile("cpsid i");
    UART_DIVIDER = CLOCK_HZ / BAUD;
    UART_CONTROL = TRANSMIT_RECEIVE_AND_WAKE;
    INTERRUPT_ENABLE = UART_RECEIVE;
    (void)UART_DATA; /* Whatever was left there; QEMU gives the next byte only after one has been read. */
    thermostat_start();
    ea_server_start(&server, &thermostat, put, NULL);
    while (!server.wants_reset) {
        uint8_t byte = next_byte();
        ea_server_take(&server, &byte, 1);
    }
    restart();
}

void ea_start(void)
{
    const uint32_t *from = ea_data_from;
    for (uint32_t *to = ea_data_to; to < ea_data_end; to++)
        *to = *from++;
    for (uint32_t *to = ea_bss; to < ea_bss_end; to++)
        *to = 0;
    serve();
}

/* The stack's top, reset, and the fourteen exceptions of a Cortex-M3: a fault starts the board again. */
typedef struct {
    uint32_t *stack_top;
    void (*exceptions[15])(void);
} vectors;

__attribute__((section(".vectors"), used)) static const vectors VECTORS = {
    ea_stack_top,
    {ea_start, restart, restart, restart, restart, restart, 0, 0, 0, 0, restart, restart, 0, restart, restart},
};
