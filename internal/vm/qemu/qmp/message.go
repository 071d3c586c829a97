package qmp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
)

// maxMessage bounds a message in bytes. The largest answers that swdt asks for have a
// few hundred kilobytes.
const maxMessage = 4 << 20

var errTooLong = fmt.Errorf("a message has more than %d bytes", maxMessage)

// message is anything that QEMU sends.
type message struct {
	Greeting *struct {
		Version struct {
			QEMU Version `json:"qemu"`
		} `json:"version"`
	} `json:"QMP"`
	Event  string          `json:"event"`
	Data   json.RawMessage `json:"data"`
	Return json.RawMessage `json:"return"`
	Error  *Error          `json:"error"`
	ID     int             `json:"id"`
}

// readMessage reads one line.
func readMessage(r *bufio.Reader) (message, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxMessage {
			return message{}, errTooLong
		}
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return message{}, err
		}
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return message{}, fmt.Errorf("a message is malformed: %w", err)
	}
	return m, nil
}

// decode returns the result of a command, or QEMU's refusal.
func (m message) decode(command string, result any) error {
	if m.Error != nil {
		m.Error.Command = command
		return m.Error
	}
	if result == nil {
		return nil
	}
	if m.Return == nil {
		return fmt.Errorf("%s: QEMU's answer has no result", command)
	}
	if err := json.Unmarshal(m.Return, result); err != nil {
		return fmt.Errorf("%s: QEMU's answer is malformed: %w", command, err)
	}
	return nil
}
