package delta

// The streams of a patch other than Whole, in the order in which they come. Then
// come the literals, up to its end.
const (
	streamSkips       = iota // literal bytes before each block
	streamSizes              // of the blocks
	streamMoves              // changes of displacement between blocks, zigzag
	streamGaps               // see differences
	streamValues             // see differences
	streamImages             // where both files are loaded
	streamWordGaps           // words predicted right before each wrong one
	streamWordErrors         // what the wrong ones lack
	streamOperandGaps        // the same of operands, in Small
	streamOperandErrors
	streamCount
)

const (
	// chunk is the most of a block that is worked on at once. It is part of the
	// format: no operand crosses the border between two.
	chunk = 64 << 10

	// windowSize is how far back the compressed streams refer; who applies a patch
	// keeps that much of each.
	windowSize = 4 << 20

	// maxStream bounds the compressed bytes of all streams that are kept in memory,
	// beyond the size of the new file.
	maxStream = 1 << 20
)
