//go:build linux

package main

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"testing"
	"time"
)

func TestLaneLetsThroughItsRate(t *testing.T) {
	now := time.Unix(0, 0)
	lane := newLane(1e6, func() time.Time { return now })
	for range 100 {
		now = lane.book(10_000)
	}
	if took := now.Sub(time.Unix(0, 0)); took != time.Second {
		t.Errorf("1 MB at 1 MB/s took %s", took)
	}
	// A timer that fires late costs nothing; an idle lane accumulates no credit.
	now = now.Add(time.Millisecond)
	if left := lane.book(10_000).Sub(now); left != 9*time.Millisecond {
		t.Errorf("after 1 ms late: %s", left)
	}
	now = now.Add(time.Hour)
	if left := lane.book(10_000).Sub(now); left != 10*time.Millisecond-late {
		t.Errorf("after an hour: %s", left)
	}
}

func TestUnlimitedLaneNeverWaits(t *testing.T) {
	now := time.Unix(0, 0)
	lane := newLane(0, func() time.Time { return now })
	if left := lane.book(1 << 30); !left.Equal(now) {
		t.Errorf("left at %s", left)
	}
}

func TestProxyCarriesBothWaysAndTheEnd(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		conn, err := echo.Accept()
		if err != nil {
			return
		}
		_, _ = io.Copy(conn, conn)
		conn.Close()
	}()
	p, err := newProxy(t.Context(), Link{Rate: 1e9, RoundTrip: 2 * time.Millisecond}, echo.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	conn, err := net.Dial("tcp", p.address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sent := make([]byte, 1<<20)
	_, _ = rand.Read(sent)
	go func() {
		_, _ = conn.Write(sent)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	begun := time.Now()
	got, err := io.ReadAll(conn)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d bytes came back, %v", len(got), err)
	}
	if took := time.Since(begun); took < 2*time.Millisecond {
		t.Errorf("there and back in %s", took)
	}
}

func TestClosingAProxyEndsItsConnections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p, err := newProxy(t.Context(), Link{}, listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", p.address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection still stands")
	}
}
