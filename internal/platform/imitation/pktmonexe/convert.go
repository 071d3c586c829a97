package pktmonexe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/pcapng"
)

// writeLog writes the captured packets to the session's log file.
func (p *program) writeLog(s state) error {
	data, err := encode(s.packets(s.Began))
	if err != nil {
		return err
	}
	return p.write(s.Log, string(data))
}

func encode(packets []packet) ([]byte, error) {
	var out bytes.Buffer
	w, err := pcapng.NewWriter(&out, "pktmon")
	if err != nil {
		return nil, err
	}
	number, err := w.AddInterface(pcapng.Interface{LinkType: pcapng.Ethernet})
	for _, one := range packets {
		err = errors.Join(err, w.Write(pcapng.Packet{Interface: number, Time: one.time, Data: one.data,
			Length: len(one.data), Comment: one.comment()}))
	}
	return out.Bytes(), err
}

// comment returns the text that the log stores with a packet, in the form COMPONENT REASON.
func (k packet) comment() string {
	if k.seen == 0 {
		return ""
	}
	return strings.TrimSpace(strconv.Itoa(k.seen) + " " + k.reason)
}

func (p *program) readLog(path string) (all []packet, err error) {
	text, err := p.read(path)
	if err != nil {
		return nil, err
	}
	if text == "" {
		return nil, refuse("Error: %s is not a log file.", path)
	}
	r := pcapng.NewReader(strings.NewReader(text))
	for {
		one, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		seen, reason, _ := strings.Cut(one.Comment, " ")
		k := packet{time: one.Time, data: bytes.Clone(one.Data), reason: reason}
		if k.seen, err = strconv.Atoi(seen); err != nil {
			return nil, err
		}
		all = append(all, k)
	}
}

// etl2pcap converts a log to pcapng. It leaves out dropped packets unless only
// dropped packets are requested, and does not write the reasons of drops.
func (p *program) etl2pcap(args []string) error {
	file, out, flags, err := conversion(args, names("o out", "d drop-only", "c component-id"))
	if err != nil {
		return err
	}
	log, err := p.readLog(file)
	if err != nil {
		return err
	}
	_, drops := flags["drop-only"]
	var chosen []packet
	for _, one := range log {
		if (one.reason != "") == drops {
			one.reason, one.seen = "", 0
			chosen = append(chosen, one)
		}
	}
	data, err := encode(chosen)
	if err != nil {
		return err
	}
	return errors.Join(p.write(out, string(data)), p.print("Processing...\n\nPackets total: %d\n", len(chosen)))
}

func (p *program) etl2txt(args []string) error {
	file, out, _, err := conversion(args, names("o out", "s stats-only", "t timestamp-only", "m metadata", "b brief",
		"v verbose", "x hex", "e no-ethernet", "l vxlan"))
	if err != nil {
		return err
	}
	log, err := p.readLog(file)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, one := range log {
		text.WriteString(one.text(p.zone()))
	}
	return errors.Join(p.write(out, strings.ReplaceAll(text.String(), "\n", "\r\n")), p.print("Processing...\n"))
}

func conversion(args []string, known map[string]string) (file, out string, flags map[string][]string, err error) {
	flags, plain, err := options(args, known)
	if err != nil || len(plain) != 1 || len(flags["out"]) != 1 {
		return "", "", nil, refuse("Error: one file, and --out: %q %v", args, err)
	}
	return plain[0], flags["out"][0], flags, nil
}

func (p *program) zone() *time.Location { return time.UTC }

// text returns a packet in the form of etl2txt: a line that describes the
// packet, and a line with its contents.
func (k packet) text(zone *time.Location) string {
	d := dissect(k.data)
	end := func(i int) string {
		if i < len(d.ports) {
			return d.ips[i].String() + "." + d.ports[i]
		}
		return d.ips[i].String()
	}
	line := fmt.Sprintf("%s > %s, ethertype IPv4 (0x0800), length %d: %s > %s: %s\n", d.macs[0], d.macs[1], len(k.data),
		end(0), end(1), d.protocol)
	about := fmt.Sprintf("PktGroupId 1, PktNumber 1, Appearance 1, Direction Rx , Type Ethernet , Component %d, "+
		"Filter 1, ", k.seen)
	size := fmt.Sprintf("OriginalSize %d, LoggedSize %d\n", len(k.data), len(k.data))
	prefix := "[00]0000.0000::" + k.time.In(zone).Format("2006-01-02 15:04:05.000000000") +
		" [Microsoft-Windows-PktMon] "
	if k.reason == "" {
		return prefix + about + size + "\t" + line
	}
	return prefix + "Drop: " + about + "DropReason " + k.reason + " , DropLocation 0xE000460A, " +
		size + "\tDrop: " + line
}
