package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
)

// largestFrame is the largest size in bytes of a frame that is read. It is many times the
// size of Writer's frames, so a larger frame does not belong to a recording.
const largestFrame = 64 << 20

// Recording describes the recordings in a file.
type Recording struct {
	Metas []Meta // one for each recording in the file
	// Cut reports whether the file ends within a frame, for example because the recording program
	// was killed.
	Cut bool
}

// Meta returns the Meta of the latest recording.
func (r Recording) Meta() Meta {
	if len(r.Metas) == 0 {
		return Meta{}
	}
	return r.Metas[len(r.Metas)-1]
}

// Receiver receives the content of a recording, in the order in which it was recorded. Its functions may be nil.
type Receiver struct {
	// Reading also gets the Meta of the recording that contains the reading.
	Reading func(Meta, stats.Reading) error
	Levels  func(stats.Levels) error
}

// Read passes every reading of a file to the given function, in the order in which the readings
// were recorded, together with the Meta of the recording that contains the reading.
func Read(path string, each func(Meta, stats.Reading) error) (Recording, error) {
	return ReadAll(path, Receiver{Reading: each})
}

// ReadAll passes the readings and levels of a file to a receiver.
func ReadAll(path string, to Receiver) (Recording, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Recording{}, fmt.Errorf("read the recording: %w", err)
	}
	var recording Recording
	var containers []container
	_, err = readFrames(data, func(l line) error {
		switch {
		case l.Meta != nil:
			recording.Metas = append(recording.Metas, *l.Meta)
			containers = nil
		case l.Node != nil && len(recording.Metas) > 0:
			latest := &recording.Metas[len(recording.Metas)-1]
			latest.Nodes = append(latest.Nodes, *l.Node)
		case l.Container != nil:
			if l.Container.Number == len(containers) {
				containers = append(containers, *l.Container)
				return nil
			}
			if l.Container.Number < 0 || l.Container.Number > len(containers) {
				return fmt.Errorf("container %d out of turn", l.Container.Number)
			}
			containers[l.Container.Number] = *l.Container
		case l.Reading != nil && to.Reading != nil:
			r, err := l.Reading.decode(containers)
			if err != nil {
				return err
			}
			return to.Reading(recording.Meta(), r)
		case l.Levels != nil && to.Levels != nil:
			return to.Levels(stats.Levels{Node: l.Levels.Node, Taken: time.Unix(0, l.Levels.Taken), Levels: l.Levels.Levels})
		}
		return nil
	})
	if errors.Is(err, errCut) {
		recording.Cut = true
		err = nil
	}
	if err == nil && len(recording.Metas) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return recording, fmt.Errorf("read the recording %s: %w", path, err)
	}
	return recording, nil
}

// readFrames passes the lines of all complete frames to the given function, one line at a time, and
// returns the offset at which these frames end.
func readFrames(data []byte, each func(line) error) (end int, err error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(largestFrame))
	if err != nil {
		return 0, err
	}
	defer decoder.Close()
	for end < len(data) {
		size, err := frameSize(data[end:])
		if err != nil {
			return end, err
		}
		text, err := decoder.DecodeAll(data[end:end+size], nil)
		if err != nil {
			return end, err
		}
		if err := readLines(text, each); err != nil {
			return end, err
		}
		end += size
	}
	return end, nil
}

func readLines(text []byte, each func(line) error) error {
	for raw := range bytes.Lines(text) {
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			return fmt.Errorf("a line of it: %w", err)
		}
		if l.Meta != nil && l.Meta.Version != Version {
			return fmt.Errorf("its format is %d, and this swdt reads %d", l.Meta.Version, Version)
		}
		if err := each(l); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) decode(containers []container) (stats.Reading, error) {
	decoded := stats.Reading{
		Node: r.Node, Source: r.Source, Caller: r.Caller, Received: time.Unix(0, r.Received),
		Latency: time.Duration(r.Latency),
		Cores:   r.Cores, Err: r.Err,
	}
	for _, s := range r.Samples {
		if s[0] == nil || s[1] == nil || *s[0] < 0 || *s[0] >= int64(len(containers)) {
			return stats.Reading{}, errors.New("a sample of no container")
		}
		c := containers[*s[0]]
		decoded.Samples = append(decoded.Samples, stats.Sample{
			Container: c.Container, Limit: c.Limit, Taken: time.Unix(0, *s[1]),
			Reported: unsigned(s[2]), Counter: unsigned(s[3]), Memory: unsigned(s[4]),
		})
	}
	return decoded, nil
}

func unsigned(v *int64) *uint64 {
	if v == nil {
		return nil
	}
	return stats.Value(uint64(*v))
}
