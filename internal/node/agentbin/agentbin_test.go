package agentbin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"testing"
	"testing/fstest"
)

func TestUnpackGivesBackWhatWasPacked(t *testing.T) {
	for _, size := range []int{0, 1, 4096, 100_000} {
		executable := make([]byte, size)
		for i := range executable { // neither constant nor random
			executable[i] = byte(i * i >> 7)
		}
		packed, err := Pack(executable)
		if err != nil {
			t.Fatal(err)
		}
		agent, err := Unpack(packed)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(executable)
		if agent.Hash != hex.EncodeToString(sum[:]) || agent.Size != int64(len(executable)) {
			t.Fatalf("got hash %s and size %d", agent.Hash, agent.Size)
		}
		for range 2 { // Open can be called again
			r, err := agent.Open()
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(got, executable) {
				t.Fatalf("got %d bytes, %v", len(got), err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestDamagedAgentIsNoticed(t *testing.T) {
	packed, err := Pack(bytes.Repeat([]byte("agent"), 100))
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range [][]byte{nil, packed[:20], packed[8:], bytes.Repeat([]byte{0}, 200)} {
		if _, err := Unpack(damaged); err == nil {
			t.Errorf("accepted %d damaged bytes", len(damaged))
		}
	}
	agent, err := Unpack(packed[:len(packed)-3])
	if err != nil {
		t.Fatal(err)
	}
	r, err := agent.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadAll(r); err == nil {
		t.Error("a truncated agent was read to its end")
	}
}

func TestWithoutAnAgentTheErrorSaysHowToGetOne(t *testing.T) {
	if _, err := fromFS(fstest.MapFS{}); !errors.Is(err, ErrNotEmbedded) {
		t.Fatalf("the error is %v, want %v", err, ErrNotEmbedded)
	}
	packed, err := Pack([]byte("MZ agent"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fromFS(fstest.MapFS{packedName: {Data: packed}}); err != nil {
		t.Fatal(err)
	}
}
