/** The release of this package; a test holds it to package.json. */
export const RELEASE = '0.1.0'
