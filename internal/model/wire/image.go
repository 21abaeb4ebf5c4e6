package wire

import (
	"bytes"
	"encoding/base64"
	"image"
	_ "image/gif" // a format that is read
	"image/jpeg"
	"image/png"
	"strings"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // a format that is read
)

// What every service takes: Anthropic refuses more than 5 MB as text, and more than
// 2,000 pixels on a side if there are many images.
const (
	maxImageText = 5 << 20
	maxImageSide = 2000

	maxImagePixels = 100 << 20 // that are decoded
)

// FitImage returns the data URL of an image, scaled down if it is larger than services
// take. What cannot be read is returned as it is.
func FitImage(url string) string {
	kind, text, ok := strings.Cut(url, ";base64,")
	if !ok || !strings.HasPrefix(kind, "data:image/") {
		return url
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return url
	}
	size, format, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil || size.Width < 1 || size.Height < 1 || size.Width > maxImagePixels/size.Height {
		return url
	}
	if len(text) <= maxImageText && max(size.Width, size.Height) <= maxImageSide {
		return url
	}
	full, _, err := image.Decode(bytes.NewReader(raw))
	if err != nil {
		return url
	}
	for side := maxImageSide; side >= 500; side = side * 3 / 4 {
		if small, ok := encodeImage(scaleImage(full, side), format == "png"); ok {
			return small
		}
	}
	return url
}

// scaleImage makes an image at most side pixels wide and high.
func scaleImage(full image.Image, side int) image.Image {
	b := full.Bounds()
	longest := max(b.Dx(), b.Dy())
	if longest <= side {
		return full
	}
	to := image.NewRGBA(image.Rect(0, 0, max(1, b.Dx()*side/longest), max(1, b.Dy()*side/longest)))
	draw.CatmullRom.Scale(to, to.Bounds(), full, b, draw.Src, nil)
	return to
}

// encodeImage returns an image as a data URL, if it is small enough: as PNG if it was one, so that
// text stays sharp, else, or if that is too large, as JPEG.
func encodeImage(img image.Image, sharp bool) (string, bool) {
	var out bytes.Buffer
	if sharp && png.Encode(&out, img) == nil && base64.StdEncoding.EncodedLen(out.Len()) <= maxImageText {
		return "data:image/png;base64," + base64.StdEncoding.EncodeToString(out.Bytes()), true
	}
	out.Reset()
	if jpeg.Encode(&out, img, &jpeg.Options{Quality: 85}) != nil || base64.StdEncoding.EncodedLen(out.Len()) > maxImageText {
		return "", false
	}
	return "data:image/jpeg;base64," + base64.StdEncoding.EncodeToString(out.Bytes()), true
}
