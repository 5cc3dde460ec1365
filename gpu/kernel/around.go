package kernel

// Around puts Size × Size rows side by side: those around each row of a picture, line by line, zeros beyond its
// edges. Y is not X.
type Around struct {
	X, Y             uint64 // float32 rows
	Width, Size      int    // of a row of X; Size is odd
	XStride, YStride int    // in float32
	Rows             int
	Texts            uint64 // of Text: the pictures
	Count            uint64 // address of a uint32, how many of the rows are in use; 0: all
}

// Uses implements Launch.
func (a *Around) Uses(u *Uses) {
	u.readFloats(a.X, a.Rows, a.XStride, a.Width)
	u.writeFloats(a.Y, a.Rows, a.YStride, a.Size*a.Size*a.Width)
}
