package vfp

import (
	"strconv"
	"strings"
)

// ParsePorts parses vfpctrl's list of ports, as JSON or text. It returns nil for any other
// output.
func ParsePorts(printed string) []Port {
	if ports, ok := portsOfJSON(printed); ok {
		return ports
	}
	var ports []Port
	for line := range strings.Lines(printed) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if plain(name) == "portname" { // each port begins with this line
			ports = append(ports, Port{Name: value})
		}
		if len(ports) == 0 {
			continue
		}
		last := &ports[len(ports)-1]
		switch plain(name) {
		case "portfriendlyname":
			last.Label = value
		case "switchfriendlyname":
			last.Switch = value
		case "macaddress":
			last.MAC = value
		}
	}
	return ports
}

// ParseCounters parses vfpctrl's counters of a port, as JSON or text. It returns nil for any
// other output.
func ParseCounters(printed string) []Counters {
	if all, ok := countersOfJSON(printed); ok {
		return all
	}
	var all []Counters
	for line := range strings.Lines(printed) {
		if direction, ok := directionOf(line); ok {
			all = append(all, Counters{Direction: direction})
			continue
		}
		if value, ok := valueOf(line); ok && len(all) > 0 {
			last := &all[len(all)-1]
			last.Values = append(last.Values, value)
		}
	}
	return all
}

// directionOf parses `Direction - OUT`.
func directionOf(line string) (string, bool) {
	switch plain(line) {
	case "directionout":
		return Out, true
	case "directionin":
		return In, true
	}
	return "", false
}

// valueOf parses `SYN packets : 12`; the name may contain colons, too.
func valueOf(line string) (Value, bool) {
	at := strings.LastIndex(line, ":")
	if at < 0 {
		return Value{}, false
	}
	count, err := strconv.ParseUint(strings.TrimSpace(line[at+1:]), 10, 64)
	return Value{Name: strings.Join(strings.Fields(line[:at]), " "), Count: count}, err == nil
}
