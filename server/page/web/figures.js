// Numbers as people read them.

export function rate(n) {
  return n >= 100 ? Math.round(n).toLocaleString('en') : n >= 10 ? n.toFixed(1) : n > 0 ? n.toFixed(2) : '0';
}

export const percent = (share) => (share > 0 && share < 0.0995 ? (100 * share).toFixed(1) : Math.round(100 * share)) + ' %';

export function bytes(n) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (n >= 999.5 && unit < units.length - 1) { n /= 1000; unit++; }
  return `${n >= 100 || unit === 0 ? Math.round(n) : n.toFixed(1)} ${units[unit]}`;
}

// count is a large number in words.
export function count(n) {
  if (n >= 1e9) return (n / 1e9).toFixed(1) + ' billion';
  if (n >= 1e6) return (n / 1e6).toFixed(1) + ' million';
  return n.toLocaleString('en');
}

// duration is of seconds.
export function duration(s) {
  if (s <= 0) return '–';
  if (s < 1e-3) return Math.round(s * 1e6) + ' µs';
  if (s < 1) return (s < 0.0995 ? (s * 1e3).toFixed(1) : Math.round(s * 1e3)) + ' ms';
  if (s < 60) return s.toFixed(1) + ' s';
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}
