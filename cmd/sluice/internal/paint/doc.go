// Package paint has the commands that make pictures: image, upscale.
package paint
