//go:build windows

package main

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"
)

// statistics returns a containerd.runhcs.stats.v1.Statistics, which containerd's CRI plugin
// expects from every shim on Windows. Field 1 has the statistics of a Windows container. (microsoft/hcsshim,
// cmd/containerd-shim-runhcs-v1/stats/stats.proto; HCS counts in 100 ns.)
func statistics(u usage, created, now time.Time) *anypb.Any {
	const tick = 100 // in ns
	user, kernel := u.user*tick, u.kernel*tick
	var windows message
	windows.embed(1, timestamp(now))
	windows.embed(2, timestamp(created))
	windows.number(3, uint64(now.Sub(created)))
	windows.embed(4, numbers(user+kernel, user, kernel))
	windows.embed(5, numbers(u.commit, u.commit, u.workingSet))
	var whole message
	whole.embed(1, windows)
	return &anypb.Any{TypeUrl: "containerd.runhcs.stats.v1.Statistics", Value: whole}
}

func timestamp(t time.Time) message { return numbers(uint64(t.Unix()), uint64(t.Nanosecond())) }

// numbers encodes a message with these numbers as fields 1, 2, ….
func numbers(values ...uint64) message {
	var m message
	for i, value := range values {
		m.number(protowire.Number(i+1), value)
	}
	return m
}

// message is an encoded protobuf message.
type message []byte

func (m *message) number(field protowire.Number, value uint64) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), value)
}

func (m *message) embed(field protowire.Number, other message) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), other)
}
