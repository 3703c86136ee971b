/* lcms2: an ICC profile; its texts and curves are read, and two pixels go through it to sRGB. */
#include <stdint.h>

#include "lcms2.h"

static void silent(cmsContext context, cmsUInt32Number code, const char *text) {
  (void)context, (void)code, (void)text;
}

static void transform(cmsHPROFILE profile, cmsHPROFILE standard) {
  cmsUInt32Number format = cmsFormatterForColorspaceOfProfile(profile, 1, 0);
  cmsHTRANSFORM transform =
      cmsCreateTransform(profile, format, standard, TYPE_RGB_8, INTENT_PERCEPTUAL,
                         cmsFLAGS_NOCACHE | cmsFLAGS_NOOPTIMIZE);
  if (!transform) return;
  uint8_t pixels[2 * 16] = {1, 90, 200, 255}, result[2 * 3];
  cmsDoTransform(transform, pixels, result, 2);
  cmsDeleteTransform(transform);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  cmsSetLogErrorHandler(silent);
  cmsHPROFILE profile = cmsOpenProfileFromMem(data, (cmsUInt32Number)size);
  if (!profile) return 0;
  char text[64];
  cmsGetProfileInfoASCII(profile, cmsInfoDescription, "en", "US", text, sizeof text);
  cmsInt32Number tags = cmsGetTagCount(profile);
  for (cmsInt32Number tag = 0; tag < tags && tag < 64; tag++)
    cmsReadTag(profile, cmsGetTagSignature(profile, (cmsUInt32Number)tag));
  cmsHPROFILE standard = cmsCreate_sRGBProfile();
  if (cmsChannelsOf(cmsGetColorSpace(profile)) <= 15) transform(profile, standard);
  cmsCloseProfile(standard);
  cmsCloseProfile(profile);
  return 0;
}
