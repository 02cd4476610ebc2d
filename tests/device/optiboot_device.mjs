// An ATmega328P with Optiboot by avr8js behind a TCP port of the loopback. Run by test_optiboot.py.
//     node optiboot_device.mjs AVR8JS_DIRECTORY OPTIBOOT_HEX PORT
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { createRequire } from "node:module";

const [directory, hex, port] = process.argv.slice(2);
const avr = createRequire(import.meta.url)(directory);
const HERTZ = 16e6;
const SLICE_MS = 10;

const program = new Uint16Array(0x8000 / 2).fill(0xffff);
const bytes = new Uint8Array(program.buffer);
for (const line of readFileSync(hex, "ascii").split(/\r?\n/)) {
  if (line.startsWith(":") && line.slice(7, 9) === "00") {
    const count = parseInt(line.slice(1, 3), 16);
    const address = parseInt(line.slice(3, 7), 16);
    for (let i = 0; i < count; i++) bytes[address + i] = parseInt(line.slice(9 + 2 * i, 11 + 2 * i), 16);
  }
}

const cpu = new avr.CPU(program);
new avr.AVRTimer(cpu, avr.timer1Config);
const usart = new avr.AVRUSART(cpu, avr.usart0Config, HERTZ);
cpu.pc = 0x7e00 / 2;
cpu.data[0x54] = 2; // MCUSR says "reset by the pin": otherwise Optiboot goes on to the program, which is empty.

const incoming = [];
let client = null;
usart.onByteTransmit = (byte) => client?.write(Buffer.from([byte]));
usart.onRxComplete = () => feed();
function feed() {
  if (incoming.length && !usart.rxBusy && usart.writeByte(incoming[0])) incoming.shift();
}

createServer((socket) => {
  client = socket;
  socket.on("data", (portion) => incoming.push(...portion));
  socket.on("error", () => {});
}).listen(Number(port), "127.0.0.1", () => console.log("ready"));

setInterval(() => {
  const until = cpu.cycles + (HERTZ / 1000) * SLICE_MS;
  while (cpu.cycles < until) {
    avr.avrInstruction(cpu);
    cpu.tick();
    if (incoming.length && cpu.cycles > 0.4 * HERTZ) feed(); // What comes before is lost on the real chip too.
  }
}, SLICE_MS);
