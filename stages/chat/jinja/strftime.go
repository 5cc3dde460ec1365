package jinja

import (
	"fmt"
	"strings"
	"time"
)

// strftime formats the time of the rendering with C's directives, in English as in the C locale. The flags "-"
// (no padding), "_" (spaces) and "0" (zeros) of glibc are understood. An unknown directive stays as it is.
func (r *run) strftime(format string) (Value, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 >= len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		flag := byte(0)
		if strings.IndexByte("-_0", format[i]) >= 0 && i+1 < len(format) {
			flag = format[i]
			i++
		}
		text, ok := directive(r.now, format[i])
		switch {
		case !ok:
			b.WriteByte('%')
			if flag != 0 {
				b.WriteByte(flag)
			}
			b.WriteByte(format[i])
		default:
			b.WriteString(repad(text, flag))
		}
	}
	return r.str(b.String())
}

// repad changes the padding of a number.
func repad(s string, flag byte) string {
	trimmed := strings.TrimLeft(s[:max(len(s)-1, 0)], "0 ") + s[max(len(s)-1, 0):]
	switch flag {
	case '-':
		return trimmed
	case '_':
		return strings.Repeat(" ", len(s)-len(trimmed)) + trimmed
	case '0':
		return strings.Repeat("0", len(s)-len(trimmed)) + trimmed
	}
	return s
}

func directive(t time.Time, c byte) (string, bool) {
	if layout, ok := timeLayouts[c]; ok {
		return t.Format(layout), true
	}
	year, week := t.ISOWeek()
	yearDay, weekday := t.YearDay()-1, int(t.Weekday())
	switch c {
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100), true
	case 'e':
		return fmt.Sprintf("%2d", t.Day()), true
	case 'j':
		return fmt.Sprintf("%03d", yearDay+1), true
	case 'k':
		return fmt.Sprintf("%2d", t.Hour()), true
	case 'l':
		return fmt.Sprintf("%2d", (t.Hour()+11)%12+1), true
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 's':
		return fmt.Sprint(t.Unix()), true
	case 'u':
		return fmt.Sprint((weekday+6)%7 + 1), true
	case 'w':
		return fmt.Sprint(weekday), true
	case 'U':
		return fmt.Sprintf("%02d", (yearDay+7-weekday)/7), true
	case 'W':
		return fmt.Sprintf("%02d", (yearDay+7-(weekday+6)%7)/7), true
	case 'V':
		return fmt.Sprintf("%02d", week), true
	case 'G':
		return fmt.Sprint(year), true
	case 'g':
		return fmt.Sprintf("%02d", year%100), true
	case 'n':
		return "\n", true
	case 't':
		return "\t", true
	case '%':
		return "%", true
	case 'z', 'Z':
		return "", true // Python's now() knows no zone
	}
	return "", false
}

// timeLayouts maps directives to Go's layouts.
var timeLayouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January", 'd': "02", 'm': "01", 'y': "06", 'Y': "2006",
	'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'P': "pm", 'D': "01/02/06", 'F': "2006-01-02",
	'T': "15:04:05", 'R': "15:04", 'r': "03:04:05 PM", 'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06",
	'X': "15:04:05",
}
