package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/localfile"
)

const (
	// frameEvery is the maximum time span of readings that are lost if the program is
	// killed.
	frameEvery = 5 * time.Second
	// frameBytes is the size of the pending lines at which a frame is written, even before
	// frameEvery is over.
	frameBytes = 1 << 20
)

// Writer appends a recording to a file. Only one goroutine at a time may use it.
type Writer struct {
	file    *os.File
	encoder *zstd.Encoder
	lines   bytes.Buffer
	began   time.Time // the receive time of the first reading that is not yet written
	fresh   bool      // the file was empty before, and has no reading yet

	containers map[stats.Container]*container
}

// Create begins a recording in a file, after the recordings that the file already has. It
// truncates an incomplete frame of an earlier recording.
func Create(path string, meta Meta) (w *Writer, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, localfile.Private)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("record to %s: %w", path, err), file.Close())
		}
	}()
	end, err := toTheEnd(file)
	if err != nil {
		return nil, err
	}
	// One thread, since the program that records must use little memory and CPU.
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(frameBytes),
		zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, err
	}
	w = &Writer{file: file, encoder: encoder, fresh: end == 0, containers: map[stats.Container]*container{}}
	meta.Version = Version
	if err := w.line(line{Meta: &meta}); err != nil {
		return nil, err
	}
	return w, w.Flush()
}

// toTheEnd truncates the file after the last complete frame, moves to that offset and
// returns it.
func toTheEnd(file *os.File) (end int, err error) {
	data, err := io.ReadAll(file)
	if err != nil {
		return 0, err
	}
	end, err = readFrames(data, func(line) error { return nil })
	if err != nil && !errors.Is(err, errCut) {
		return 0, fmt.Errorf("it holds something else: %w; use another file", err)
	}
	if err := file.Truncate(int64(end)); err != nil {
		return 0, err
	}
	_, err = file.Seek(int64(end), io.SeekStart)
	return end, err
}

// AddNode records the facts about a node.
func (w *Writer) AddNode(facts NodeFacts) error { return w.line(line{Node: &facts}) }

// AddLevels records the numbers of a look at a node.
func (w *Writer) AddLevels(l stats.Levels) error {
	w.fresh = false
	return w.line(line{Levels: &levels{Node: l.Node, Taken: l.Taken.UnixNano(), Levels: l.Levels}})
}

// Add records a reading: it adds the reading to the pending lines, which Flush writes to the file.
// Add calls Flush if the size of the pending lines reaches frameBytes, or if their first reading
// was received at least frameEvery before r.
func (w *Writer) Add(r stats.Reading) error {
	w.fresh = false
	recorded := reading{
		Node: r.Node, Source: r.Source, Caller: r.Caller, Received: r.Received.UnixNano(), Latency: int64(r.Latency),
		Cores: r.Cores, Err: r.Err,
	}
	for _, s := range r.Samples {
		number, err := w.number(s)
		if err != nil {
			return err
		}
		taken := s.Taken.UnixNano()
		recorded.Samples = append(recorded.Samples,
			sample{&number, &taken, signed(s.Reported), signed(s.Counter), signed(s.Memory)})
	}
	if err := w.line(line{Reading: &recorded}); err != nil {
		return err
	}
	if w.began.IsZero() {
		w.began = r.Received
	}
	if w.lines.Len() >= frameBytes || r.Received.Sub(w.began) >= frameEvery {
		return w.Flush()
	}
	return nil
}

// number returns the number of a sample's container. It records the container if it is new
// or if its limit has changed.
func (w *Writer) number(s stats.Sample) (int64, error) {
	known := w.containers[s.Container]
	if known == nil {
		known = &container{Number: len(w.containers), Container: s.Container}
		w.containers[s.Container] = known
	} else if known.Limit == s.Limit {
		return int64(known.Number), nil
	}
	known.Limit = s.Limit
	return int64(known.Number), w.line(line{Container: known})
}

func signed(v *uint64) *int64 {
	if v == nil {
		return nil
	}
	i := int64(*v) // the same bits; the reader converts them back
	return &i
}

func (w *Writer) line(l line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	w.lines.Write(text)
	w.lines.WriteByte('\n')
	return nil
}

// Flush writes the pending lines as a frame of their own.
func (w *Writer) Flush() error {
	if w.lines.Len() == 0 {
		return nil
	}
	frame := w.encoder.EncodeAll(w.lines.Bytes(), nil)
	w.lines.Reset()
	w.began = time.Time{}
	if _, err := w.file.Write(frame); err != nil {
		return fmt.Errorf("record to %s: %w", w.file.Name(), err)
	}
	return nil
}

// Close writes the pending lines and ends the recording. It removes the file if the file
// was empty before and no reading was added.
func (w *Writer) Close() error {
	err := errors.Join(w.Flush(), w.encoder.Close(), w.file.Close())
	if w.fresh {
		err = errors.Join(err, os.Remove(w.file.Name()))
	}
	return err
}
