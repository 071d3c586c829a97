//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wait"
)

// stateLabel is the name of the partition that holds the guest's state; lab/guest makes it.
const stateLabel = "swdt-state"

// kept is the state of the guest itself, in addition to the state of the simulated Windows.
type kept struct {
	Settings settings
	// Installation is the installation that has not ended; its Phase is installed if there is none.
	Installation installation
}

// state is the partition with the guest's state. The partition consists of two slots of half its size.
// A save overwrites the slot that does not hold the newest state, and writes the data before the
// header. So, after the first save, the partition always holds a complete state.
type state struct {
	device interface {
		io.ReaderAt
		io.WriterAt
		Sync() error
	}
	slot   int64 // size of a slot, in bytes
	newest uint64
}

// The header of a slot, in its first block:
//
//	8 bytes  magic
//	8 bytes  number of the save, little endian like all numbers below; the slot is this number modulo 2
//	8 bytes  length of the data, which begins at the next block
//	32 bytes SHA-256 of the data
const (
	stateMagic = "SWDTKEPT"
	block      = 4096
	headerSize = 8 + 8 + 8 + sha256.Size
)

// findDisk waits for the partition with the guest's state.
func findDisk(ctx context.Context) (*state, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var device string
	err := wait.Condition{
		Name:     "a disk with the partition " + stateLabel,
		Interval: 50 * time.Millisecond,
		Look: func(context.Context) (err error) {
			device, err = partition(stateLabel)
			return err
		},
	}.Wait(ctx)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open the guest's state: %w", err)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("measure the guest's state: %w", err)
	}
	return &state{device: f, slot: size / 2 / block * block}, nil
}

// partition returns the device of the partition with a name.
func partition(label string) (string, error) {
	files, err := filepath.Glob("/sys/class/block/*/uevent")
	if err != nil {
		return "", wait.Stop(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if strings.TrimSpace(line) == "PARTNAME="+label {
				return "/dev/" + filepath.Base(filepath.Dir(file)), nil
			}
		}
	}
	return "", errors.New("no disk has it yet")
}

// load returns the newest state; windows is nil if there is none.
func (s *state) load() (k kept, windows *simulated.Saved, err error) {
	data := s.read()
	if data == nil {
		return kept{}, nil, nil
	}
	plain, err := zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return kept{}, nil, fmt.Errorf("read the guest's state: %w", err)
	}
	defer plain.Close()
	in := bufio.NewReader(plain) // an io.ByteReader, so that neither decoder consumes bytes of the other
	if err := gob.NewDecoder(in).Decode(&k); err != nil {
		return kept{}, nil, fmt.Errorf("read the guest's state: %w", err)
	}
	if _, err := in.Peek(1); errors.Is(err, io.EOF) { // Windows has not started yet
		return k, nil, nil
	}
	windows, err = simulated.ReadSaved(in)
	return k, windows, err
}

// read returns the data of the newest whole slot, or nil.
func (s *state) read() (newest []byte) {
	for i := range int64(2) {
		number, data := s.readSlot(i)
		if data != nil && number > s.newest {
			s.newest, newest = number, data
		}
	}
	return newest
}

func (s *state) readSlot(i int64) (number uint64, data []byte) {
	header := make([]byte, headerSize)
	if _, err := s.device.ReadAt(header, i*s.slot); err != nil || string(header[:8]) != stateMagic {
		return 0, nil
	}
	number = binary.LittleEndian.Uint64(header[8:])
	length := binary.LittleEndian.Uint64(header[16:])
	if length == 0 || length > uint64(s.slot-block) {
		return 0, nil
	}
	data = make([]byte, length)
	if _, err := s.device.ReadAt(data, i*s.slot+block); err != nil {
		return 0, nil
	}
	if sum := sha256.Sum256(data); !bytes.Equal(sum[:], header[24:]) {
		return 0, nil
	}
	return number, data
}

// save writes a new state; windows is nil if Windows has not started yet. When it returns without
// an error, the state is on the disk.
func (s *state) save(k kept, windows *simulated.Machine) error {
	var data bytes.Buffer
	// A guest without acceleration compresses slowly, and its files compress little.
	packed, err := zstd.NewWriter(&data, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return fmt.Errorf("save the guest's state: %w", err)
	}
	err = gob.NewEncoder(packed).Encode(k)
	if windows != nil {
		err = errors.Join(err, windows.Save(packed))
	}
	if err := errors.Join(err, packed.Close()); err != nil {
		return fmt.Errorf("save the guest's state: %w", err)
	}
	return s.write(data.Bytes())
}

func (s *state) write(data []byte) error {
	if int64(len(data)) > s.slot-block {
		return fmt.Errorf("save the guest's state: %d bytes do not fit into a slot of %d", len(data), s.slot)
	}
	number := s.newest + 1
	header := make([]byte, block)
	copy(header, stateMagic)
	binary.LittleEndian.PutUint64(header[8:], number)
	binary.LittleEndian.PutUint64(header[16:], uint64(len(data)))
	sum := sha256.Sum256(data)
	copy(header[24:], sum[:])
	at := int64(number%2) * s.slot
	for _, part := range []struct {
		data   []byte
		offset int64
	}{{data, at + block}, {header, at}} {
		if _, err := s.device.WriteAt(part.data, part.offset); err != nil {
			return fmt.Errorf("save the guest's state: %w", err)
		}
		if err := s.device.Sync(); err != nil {
			return fmt.Errorf("save the guest's state: %w", err)
		}
	}
	s.newest = number
	return nil
}
