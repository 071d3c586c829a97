package events

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Group is a short name for channels that belong together.
type Group struct {
	Name     string
	About    string
	Channels []string // names of channels, with * for any text
	IDs      []int    // ids of the wanted events; no ids: all events
	Default  bool     // reports whether swdt reads the group if the user names no channel
}

// Groups returns all groups. To add a group, add an entry.
func Groups() []Group {
	return []Group{
		{Name: "system", About: "Windows, its drivers and services", Channels: []string{"System"}, Default: true},
		{Name: "application", About: "programs that log to Windows", Channels: []string{"Application"}, Default: true},
		{Name: "services", About: "services that start, stop, fail to start, crash", Channels: []string{"System"},
			IDs: []int{7000, 7001, 7009, 7011, 7022, 7023, 7024, 7031, 7034, 7036, 7040, 7045}},
		{Name: "hcs", About: "the host compute service: containers and their virtual machines",
			Channels: []string{"Microsoft-Windows-Hyper-V-Compute-*"}, Default: true},
		{Name: "hns", About: "the host network service: networks, endpoints, load balancers",
			Channels: []string{"Microsoft-Windows-Host-Network-Service*"}, Default: true},
		{Name: "vmswitch", About: "Hyper-V's virtual switch",
			Channels: []string{"Microsoft-Windows-Hyper-V-VmSwitch-*"}, Default: true},
		{Name: "vfp", About: "the virtual filtering platform, under the switch",
			Channels: []string{"Microsoft-Windows-Hyper-V-VfpExt*"}},
		{Name: "defender", About: "what Defender found or blocked",
			Channels: []string{"Microsoft-Windows-Windows Defender/Operational"}},
	}
}

// Defaults returns the names of the groups that are read if no channel is named.
func Defaults() (names []string) {
	for _, group := range Groups() {
		if group.Default {
			names = append(names, group.Name)
		}
	}
	return names
}

// CheckName returns an error for a text that cannot be the name of a channel, since names
// become part of wevtutil's command line.
func CheckName(name string) error {
	for _, r := range name {
		if r < ' ' || r > '~' || strings.ContainsRune(`"'<>|&^%!;:\`, r) {
			return fmt.Errorf("%q is not the name of an event channel", name)
		}
	}
	if strings.Trim(name, "* /-") == "" {
		return fmt.Errorf("%q is not the name of an event channel", name)
	}
	return nil
}

// NoChannelError reports a channel that the node does not have.
type NoChannelError struct{ Name string }

func (e *NoChannelError) Error() string {
	return fmt.Sprintf("the node has no event channel %s; `swdt exec -- wevtutil el` lists them", e.Name)
}

// selected is a channel and the ids of its wanted events; no ids: all events.
type selected struct {
	channel string
	ids     []int
}

// union returns the selection of all events that at least one of two selections selects. Both must
// be selections of the same channel.
func (s selected) union(other selected) selected {
	if len(s.ids) == 0 || len(other.ids) == 0 {
		return selected{channel: s.channel}
	}
	ids := slices.Concat(s.ids, other.ids)
	slices.Sort(ids)
	return selected{channel: s.channel, ids: slices.Compact(ids)}
}

// choose returns the node's channels that a name selects. The name of a group selects no
// channel if the node has none of the group's channels, since the Windows role with these
// channels may not be installed. Any other name must match a channel.
func choose(name string, present []string) ([]selected, error) {
	for _, group := range Groups() {
		if !strings.EqualFold(group.Name, name) ||
			slices.ContainsFunc(present, func(c string) bool { return c == name }) {
			continue
		}
		var all []selected
		for _, pattern := range group.Channels {
			for _, channel := range matching(pattern, present) {
				all = append(all, selected{channel, group.IDs})
			}
		}
		return all, nil
	}
	channels := matching(name, present)
	if len(channels) == 0 {
		return nil, &NoChannelError{Name: name}
	}
	var all []selected
	for _, channel := range channels {
		all = append(all, selected{channel: channel})
	}
	return all, nil
}

// matching returns the channels that match a pattern. It leaves out analytic, debug and diagnostic
// channels if the pattern has a *: Windows disables these channels by default, and while they are
// enabled, they cannot be read.
func matching(pattern string, present []string) (channels []string) {
	pattern = strings.ReplaceAll(strings.ToLower(pattern), "/", "\x00") // lets * match a slash
	for _, channel := range present {
		name := strings.ToLower(channel)
		ok, err := path.Match(pattern, strings.ReplaceAll(name, "/", "\x00"))
		if !ok || err != nil {
			continue
		}
		quiet := strings.HasSuffix(name, "analytic") || strings.HasSuffix(name, "debug") ||
			strings.HasSuffix(name, "diagnostic")
		if !quiet || !strings.Contains(pattern, "*") {
			channels = append(channels, channel)
		}
	}
	return channels
}
