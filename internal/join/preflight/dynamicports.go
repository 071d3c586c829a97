package preflight

import (
	"errors"
	"strconv"
	"strings"
)

// ErrNotUnderstood reports an output of netsh.exe without the expected table. The netsh of Wine prints a different text,
// or none.
var ErrNotUnderstood = errors.New("the node's netsh.exe does not print the table that Windows' netsh.exe prints")

// DynamicPorts reads the output of `netsh int ipv4 show dynamicport tcp` in any language: the first port and the number
// of ports are in the two lines that end in a number.
func DynamicPorts(text string) (first uint16, count int, err error) {
	var numbers []int
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimLeft(fields[len(fields)-1], ":")); err == nil {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) != 2 || numbers[0] < 0 || numbers[0] > 0xffff {
		return 0, 0, ErrNotUnderstood
	}
	return uint16(numbers[0]), numbers[1], nil
}
