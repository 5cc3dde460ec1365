package exchange

import "context"

// pictureBytes is the memory of all pictures that are decoded at a time. The largest that is decoded at all takes most
// of it (stages/picture.MaxBytes).
const pictureBytes = 400 << 20

// Decode waits until the exchange may decode pictures that take so many bytes of memory; the caller calls done at the
// end. More than there is for all is as much as that. Who waits too long gets ErrCrowded.
func (x *Exchange) Decode(bytes int64) (done func(), err error) {
	if bytes <= 0 || x.intake == nil {
		return func() {}, nil
	}
	bytes = min(bytes, pictureBytes)
	ctx, cancel := context.WithTimeoutCause(x.Context, x.intake.wait, ErrCrowded)
	defer cancel()
	pool := x.intake.pictures
	if err := pool.Take(ctx, x.Client, bytes, pictureBytes); err != nil {
		return nil, err
	}
	return func() { pool.Give(x.Client, bytes) }, nil
}

// Bring charges the exchange for bytes that are brought beside its body, as Receive does for the body.
func (x *Exchange) Bring(bytes int64) error {
	if x.intake == nil {
		return nil
	}
	if fault := x.pay(cost{making: bytes}, x.intake.made*7/8); fault != nil {
		return ErrCrowded
	}
	return nil
}
