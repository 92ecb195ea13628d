/** Milliseconds of CPU that this process has used. Unlike a clock, they do not go on while others have the machine. */
export function readCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
