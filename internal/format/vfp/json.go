package vfp

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// portsOfJSON parses {"Ports": [{"Name": GUID, "Id": label, "MacAddress": "00155D…"}]}.
func portsOfJSON(printed string) (ports []Port, ok bool) {
	var list struct {
		Ports []struct{ Name, ID, MacAddress, SwitchName string }
	}
	if json.Unmarshal([]byte(trimmed(printed)), &list) != nil {
		return nil, false
	}
	for _, p := range list.Ports {
		ports = append(ports, Port{Name: p.Name, Label: p.ID, Switch: p.SwitchName, MAC: p.MacAddress})
	}
	return ports, true
}

// countersOfJSON parses {"InformationArray": [{"PortCounters": {"Direction": 0, "TotalPackets":
// 5, …}}]}. The value of InformationArray, and of PortCounters, may be a list or a single object.
func countersOfJSON(printed string) (all []Counters, ok bool) {
	var whole struct {
		InformationArray several[struct {
			PortCounters several[map[string]any]
		}]
	}
	if json.Unmarshal([]byte(trimmed(printed)), &whole) != nil {
		return nil, false
	}
	for _, information := range whole.InformationArray {
		for _, counters := range information.PortCounters {
			all = append(all, countersOf(counters))
		}
	}
	return all, true
}

func countersOf(values map[string]any) Counters {
	c := Counters{Direction: Out}
	for name, value := range values {
		count, ok := countOf(value)
		if name == "Direction" {
			if count == 1 {
				c.Direction = In
			}
			continue
		}
		if ok {
			c.Values = append(c.Values, Value{Name: name, Count: count})
		}
	}
	slices.SortFunc(c.Values, func(a, b Value) int { return strings.Compare(a.Name, b.Name) })
	return c
}

// countOf parses a whole number, which may be written as text. The bool is false for any other
// value.
func countOf(value any) (uint64, bool) {
	switch v := value.(type) {
	case float64:
		return uint64(v), v >= 0
	case string:
		count, err := strconv.ParseUint(v, 10, 64)
		return count, err == nil
	}
	return 0, false
}

func trimmed(printed string) string { return strings.TrimSpace(strings.TrimPrefix(printed, "\ufeff")) }

// several is a list of objects; in the JSON, a single object may be without a list around it.
type several[T any] []T

func (s *several[T]) UnmarshalJSON(data []byte) error {
	if strings.HasPrefix(string(data), "[") {
		return json.Unmarshal(data, (*[]T)(s))
	}
	var one T
	if err := json.Unmarshal(data, &one); err != nil {
		return err
	}
	*s = several[T]{one}
	return nil
}
